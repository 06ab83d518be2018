//! Runs [`toolwarden_fuzz::retry_after`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::retry_after(data));
