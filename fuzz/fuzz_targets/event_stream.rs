//! Runs [`toolwarden_fuzz::event_stream`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::event_stream(data));
