//! Runs [`toolwarden_fuzz::rpc_message`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwarden_fuzz::rpc_message(data));
