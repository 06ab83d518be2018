//! Runs [`toolwarden_fuzz::model_reply`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::model_reply(data));
