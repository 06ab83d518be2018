//! Runs [`toolwarden_fuzz::schema_comparison`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::schema_comparison(data));
