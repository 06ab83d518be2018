//! Runs [`toolwarden_fuzz::schema_document`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::schema_document(data));
