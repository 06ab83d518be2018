//! Runs [`toolwarden_fuzz::text_scan`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::text_scan(data));
