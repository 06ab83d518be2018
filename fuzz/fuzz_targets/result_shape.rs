//! Runs [`toolwarden_fuzz::result_shape`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::result_shape(data));
