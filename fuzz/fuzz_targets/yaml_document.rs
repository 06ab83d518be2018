//! Runs [`toolwarden_fuzz::yaml_document`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::yaml_document(data));
