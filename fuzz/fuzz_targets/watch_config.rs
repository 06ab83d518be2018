//! Runs [`toolwarden_fuzz::watch_config`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::watch_config(data));
