//! Runs [`toolwarden_fuzz::condition`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::condition(data));
