//! Runs [`toolwarden_fuzz::duration`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::duration(data));
