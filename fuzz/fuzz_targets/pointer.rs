//! Runs [`toolwarden_fuzz::pointer`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::pointer(data));
