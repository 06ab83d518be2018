//! Runs every example and compares what it prints.
#![expect(
    clippy::unwrap_used,
    reason = "clippy's leave for tests does not reach helpers outside test functions"
)]

use std::process::Command;

use toolwarden_demo::{DemoServer, ShopOptions};

fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn canonicalize() {
    let printed = output(env!("CARGO_BIN_EXE_canonicalize"), &[]);
    assert_eq!(printed, include_str!("canonicalize.txt"));
}

#[test]
fn compare() {
    let printed = output(env!("CARGO_BIN_EXE_compare"), &[]);
    assert_eq!(printed, include_str!("compare.txt"));
}

#[test]
fn guard_function() {
    let printed = output(env!("CARGO_BIN_EXE_guard_function"), &[]);
    assert_eq!(printed, include_str!("guard_function.txt"));
}

#[test]
fn embed_gateway() {
    let shop = DemoServer::start(ShopOptions::default()).unwrap();
    let printed = output(env!("CARGO_BIN_EXE_embed_gateway"), &[&shop.url]);
    assert_eq!(printed, include_str!("embed_gateway.txt"));
}
