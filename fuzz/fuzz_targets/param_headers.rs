//! Runs [`toolwarden_fuzz::param_headers`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::param_headers(data));
