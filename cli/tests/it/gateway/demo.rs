use serde_json::Value;

use super::{ToolwardenProcess, post};
use crate::sandbox::{Sandbox, command_output};

#[test]
fn demo_prints_every_step() {
    let sandbox = Sandbox::new();
    let told = command_output(sandbox.command().arg("demo").output().unwrap());
    assert_eq!((told.code, told.err.as_str()), (0, ""));
    snapbox::assert_data_eq!(told.out, snapbox::file!["demo.txt"]);
}

#[test]
fn the_demo_as_a_document() {
    let sandbox = Sandbox::new();
    let told = command_output(
        sandbox
            .command()
            .args(["demo", "--format", "json"])
            .output()
            .unwrap(),
    );
    assert_eq!((told.code, told.err.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&told.out).unwrap();
    let steps = document["steps"].as_array().unwrap().iter();
    let names: Vec<&str> = steps.map(|it| it["step"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["list", "allowed", "denied", "drift", "approve", "audit"]
    );
    assert_eq!(document["schema"], "toolwarden/demo/v1");
    assert_eq!(document["steps"][3]["call"]["code"], "quarantined");
    assert_eq!(document["steps"][5]["intact"], true);
}

#[test]
fn the_demo_is_left_running() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command();
    command.args(["demo", "--keep", "--listen", "127.0.0.1:0"]);
    let mut process = ToolwardenProcess::start(command);
    let told = process.wait_for("\"mcpServers\"");
    let (_, rest) = told.split_once("keeps running at http://").unwrap();
    let address = rest.split('/').next().unwrap();
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let answer = post(address, "", message).body;
    assert_eq!(
        answer["result"]["protocolVersion"], "2025-11-25",
        "{answer}"
    );
    process.write_line("drift");
    process.wait_for("refund_order drifted\n");
    process.signal("-INT");
    assert_eq!(process.end(), Some(0));
}
