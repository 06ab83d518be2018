use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    ServedGateway, TIMEOUT, ToolwardenProcess, is_running, poll_until, servers_of, shop_settings,
};
use crate::sandbox::{Sandbox, command_output};

#[test]
fn missing_settings_explain_how_to_create_them() {
    let sandbox = Sandbox::new();
    let said = command_output(sandbox.command().arg("serve").output().unwrap());
    let expected = "error: there is no toolwarden.yaml here\n  help: `toolwarden import claude` writes one with the servers of a desktop client; `toolwarden demo` shows the gateway without one\n";
    assert_eq!(
        (said.code, said.out.as_str(), said.err.as_str()),
        (2, "", expected)
    );
}

#[test]
fn incomplete_settings_have_their_own_exit_code() {
    let sandbox = Sandbox::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    sandbox.write("no-caller.yaml", "servers: {}\n");
    sandbox.write("ok.yaml", "servers: {}\nidentity: {anonymous: ada}\n");
    sandbox.write(
        "policy.yaml",
        "servers: {}\nidentity: {anonymous: ada}\npolicy: gone.yaml\n",
    );
    for (file, code, text) in [
        (
            "no-caller.yaml",
            2,
            "no caller could use the gateway".to_owned(),
        ),
        ("policy.yaml", 2, "cannot read gone.yaml".to_owned()),
        (
            "ok.yaml",
            3,
            format!("another process listens at {address}"),
        ),
        ("missing.yaml", 2, "cannot read missing.yaml".to_owned()),
    ] {
        let listen = address.to_string();
        let args = ["serve", "--config", file, "--listen", &listen];
        let said = command_output(sandbox.command().args(args).output().unwrap());
        assert_eq!(said.code, code, "{file}: {said:?}");
        assert!(said.err.contains(&text), "{file}: {said:?}");
    }
}

#[test]
fn calls_are_served_until_the_end() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", &shop_settings("policy: policy.yaml\n"));
    sandbox.write(
        "policy.yaml",
        "tools: {}\nprincipals: {\"*\": {groups: [\"*\"]}}\n",
    );
    let mut served = ServedGateway::start(&sandbox, &[]);
    let ready = format!(
        "listening on {}/mcp (1 server, policy policy.yaml)\n",
        served.url()
    );
    assert_eq!(served.process.output(), ready);
    assert_eq!(
        served.tools(),
        [
            "shop__search_orders",
            "shop__refund_order",
            "shop__export_report",
            "shop__cancel_order",
            "shop__draft_reply",
            "shop__list_folders",
            "shop__echo"
        ]
    );
    let order = json!({"order_id": "A-1001", "amount": 5});
    let refunded = served.call("shop__refund_order", &order);
    let expected = json!({"order_id": "A-1001", "refunded": 5, "status": "refunded"});
    assert_eq!(refunded["structuredContent"], expected);
    let servers = servers_of(served.process.id());
    // The gateway's own, and the one that agents of the handshake era share.
    assert_eq!(servers.len(), 2);
    served.process.signal("-TERM");
    assert_eq!(served.process.end(), Some(0));
    let told = served.process.wait_for("ended");
    assert_eq!(
        told,
        ready + "shutting down: calls in flight have 5 s to finish\nended\n"
    );
    assert!(!servers.iter().any(|it| is_running(*it)));
    // Store and records are those of the settings.
    let verify = ["audit", "verify", "--store", "toolwarden.db"];
    let said = command_output(sandbox.command().args(verify).output().unwrap());
    assert!(
        said.code == 0 && said.out.starts_with("intact: "),
        "{said:?}"
    );
}

#[test]
fn valid_settings_are_reloaded_and_invalid_ones_are_not() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", &shop_settings(""));
    let served = ServedGateway::start(&sandbox, &[]);
    let echo = |served: &ServedGateway| served.tools().iter().any(|it| it == "shop.echo");
    assert!(!echo(&served));
    sandbox.write("toolwarden.yaml", &shop_settings("separator: .\n"));
    served.process.wait_for("reloaded: separator\n");
    assert!(echo(&served));
    sandbox.write(
        "toolwarden.yaml",
        &shop_settings("separator: _\nnonsense: 1\n"),
    );
    let told = served
        .process
        .wait_for("not reloaded; the settings in force stay:\n");
    served
        .process
        .wait_for("toolwarden.yaml:6:1: /nonsense: unknown key `nonsense`");
    assert!(echo(&served), "{told}");
    // The gateway retries refused settings only on request.
    std::thread::sleep(Duration::from_millis(1500));
    let refusals = |served: &ServedGateway| served.process.output().matches("not reloaded").count();
    assert_eq!(refusals(&served), 1);
    served.process.signal("-HUP");
    poll_until(|| (refusals(&served) == 2).then_some(())).unwrap();
    sandbox.write(
        "toolwarden.yaml",
        &shop_settings("separator: .\nstore: other.db\n"),
    );
    served
        .process
        .wait_for("Warning: store: changed; a restart is needed\n");
    assert!(echo(&served));
}

#[test]
fn events_are_logged_as_json() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", &shop_settings(""));
    let mut served = ServedGateway::start(&sandbox, &["--log", "json"]);
    served.call("shop__echo", &json!({}));
    served.process.signal("-INT");
    assert_eq!(served.process.end(), Some(0));
    let told = served.process.wait_for("\"ended\"");
    let lines = told
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    let events: Vec<&str> = lines
        .iter()
        .map(|it| it["event"].as_str().unwrap())
        .collect();
    assert_eq!(events, ["listening", "ending", "session", "ended"]);
    let session = &lines[2];
    assert_eq!(session["schema"], "toolwarden/serve/event/v1");
    assert_eq!(session["requested_groups"], json!(["default"]));
    assert_eq!(session["available_tools"].as_array().unwrap().len(), 7);
}

#[test]
fn a_call_under_way_is_answered_before_the_end() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", &shop_settings(""));
    let mut served = ServedGateway::start(&sandbox, &[]);
    served.tools();
    let slow = json!({"format": "csv", "steps": 5, "pause_ms": 200});
    let result = std::thread::scope(|scope| {
        let call = scope.spawn(|| served.call("shop__export_report", &slow));
        std::thread::sleep(Duration::from_millis(400));
        served.process.signal("-TERM");
        call.join().unwrap()
    });
    assert_ne!(result["isError"], true, "{result}");
    assert!(result["content"][0]["text"].is_string(), "{result}");
    assert_eq!(served.process.end(), Some(0));
}

#[test]
fn a_second_signal_ends_everything_at_once() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "toolwarden.yaml",
        &shop_settings("").replace("drain: 5s", "drain: 60s"),
    );
    let mut served = ServedGateway::start(&sandbox, &[]);
    served.tools();
    let address = served.address.clone();
    let session = served.session.clone();
    let call = std::thread::spawn(move || {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "shop__export_report", "arguments": {"steps": 2, "pause_ms": 60000}}});
        let asking = || super::post(&address, &session, &message.to_string());
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(asking)).is_ok()
    });
    std::thread::sleep(Duration::from_millis(500));
    let servers = servers_of(served.process.id());
    served.process.signal("-TERM");
    served.process.wait_for("shutting down");
    let begun = Instant::now();
    served.process.signal("-TERM");
    assert_eq!(served.process.end(), Some(143));
    assert!(begun.elapsed() < TIMEOUT / 2);
    assert!(!call.join().unwrap());
    poll_until(|| (!servers.iter().any(|it| is_running(*it))).then_some(())).unwrap();
}

#[test]
fn no_server_outlives_a_gateway_that_is_killed() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", &shop_settings(""));
    let mut served = ServedGateway::start(&sandbox, &[]);
    served.tools();
    let servers = servers_of(served.process.id());
    // The gateway's own, and the one that agents of the handshake era share.
    assert_eq!(servers.len(), 2);
    served.process.signal("-KILL");
    assert_eq!(served.process.end(), None);
    poll_until(|| (!servers.iter().any(|it| is_running(*it))).then_some(())).unwrap();
}

#[test]
fn server_that_cannot_start_is_reported() {
    let sandbox = Sandbox::new();
    let settings = "servers: {gone: ./no-such-program}\nidentity: {anonymous: ada}\n";
    sandbox.write("toolwarden.yaml", settings);
    let mut command = sandbox.command();
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let process = ToolwardenProcess::start(command);
    let told = process.wait_for("failed gone: ");
    assert!(told.contains("no-such-program"), "{told}");
}

/// A server that goes is ended, also one that is listened to all the time.
#[test]
fn servers_that_are_exchanged_leave_no_process_behind() {
    let sandbox = Sandbox::new();
    let settings = |value: u32| {
        let text = shop_settings("").replace("drain: 5s", "drain: 100ms");
        text.replace("sessions: shared", &format!("env: {{X: \"{value}\"}}"))
    };
    sandbox.write("toolwarden.yaml", &settings(0));
    let served = ServedGateway::start(&sandbox, &[]);
    let ours = || servers_of(served.process.id());
    assert_eq!(served.tools().len(), 7);
    let mut before = ours();
    for value in 1..4 {
        sandbox.write("toolwarden.yaml", &settings(value));
        poll_until(|| {
            let now = ours();
            (now.len() == 1 && now != before).then(|| before = now)
        })
        .unwrap_or_else(|| panic!("{value}: {:?} run", ours()));
    }
    assert_eq!(served.tools().len(), 7);
}

/// What a server says when it fails may have its secrets in it.
#[test]
fn secrets_of_servers_are_in_no_error() {
    let sandbox = Sandbox::new();
    let failing = r#"{command: sh, args: [-c, 'echo "no entry for $TOK" >&2; exit 3'], env: {TOK: "${TOK}"}}"#;
    let text =
        format!("servers: {{bad: {failing}}}\nidentity: {{anonymous: ada, admins: [ada]}}\n");
    sandbox.write("toolwarden.yaml", &text);
    let mut command = sandbox.command();
    command.env("TOK", "hunter2-and-more");
    let served = ServedGateway::start_as(command, &[]);
    let told = served.process.wait_for("no entry for ***");
    assert!(!told.contains("hunter2"), "{told}");
    let answer = served.call("bad__x", &json!({})).to_string();
    assert!(!answer.contains("hunter2"), "{answer}");
    let store = std::fs::read(sandbox.path("toolwarden.db")).unwrap();
    assert!(!String::from_utf8_lossy(&store).contains("hunter2"));
}
