//! Runs [`toolwarden_fuzz::bearer_token`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::bearer_token(data));
