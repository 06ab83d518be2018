//! Runs [`toolwarden_fuzz::uri_template`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::uri_template(data));
