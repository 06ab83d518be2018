//! Runs [`toolwarden_fuzz::settings`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::settings(data));
