//! Runs [`toolwarden_fuzz::probe_suite`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::probe_suite(data));
