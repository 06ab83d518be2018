//! Runs [`toolwarden_fuzz::policy`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::policy(data));
