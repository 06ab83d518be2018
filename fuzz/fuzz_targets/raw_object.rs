//! Runs [`toolwarden_fuzz::raw_object`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::raw_object(data));
