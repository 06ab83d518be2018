//! Runs [`toolwarden_fuzz::server_address`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::server_address(data));
