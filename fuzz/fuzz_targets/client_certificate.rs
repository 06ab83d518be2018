//! Runs [`toolwarden_fuzz::client_certificate`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::client_certificate(data));
