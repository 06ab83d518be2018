//! Runs [`toolwarden_fuzz::recorded_call`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::recorded_call(data));
