//! Runs [`toolwarden_fuzz::snapshot_file`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::snapshot_file(data));
