//! Runs [`toolwarden_fuzz::toolwatch_file`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::toolwatch_file(data));
