use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;

use crate::sandbox::{CommandOutput, Sandbox, command_output};

fn run(sandbox: &Sandbox, args: &[&str]) -> CommandOutput {
    command_output(sandbox.command().args(args).output().unwrap())
}

fn claude(sandbox: &Sandbox) {
    let program = cargo_bin!("toolwarden").to_str().unwrap();
    let file = json!({"mcpServers": {
        "shop": {"command": program, "args": ["__demo-server"]},
        "docs": {"command": "npx", "args": ["-y", "docs"], "env": {"DOCS_TOKEN": "sk-0123456789abcdef"}},
    }});
    sandbox.write("claude.json", &file.to_string());
}

#[test]
fn the_servers_of_a_client_become_settings_that_can_be_used() {
    let sandbox = Sandbox::new();
    claude(&sandbox);
    let told = run(&sandbox, &["import", "claude", "claude.json"]);
    assert_eq!((told.code, told.out.as_str()), (0, ""), "{told:?}");
    assert!(
        told.err
            .contains("`DOCS_TOKEN` looks like a plaintext secret"),
        "{told:?}"
    );
    assert!(!told.err.contains("0123456789"), "{told:?}");
    let written = "2 servers (shop, docs) of claude.json written to toolwarden.yaml; `toolwarden serve --config toolwarden.yaml` runs the gateway\n";
    assert!(told.err.ends_with(written), "{told:?}");
    let mode = sandbox
        .path("toolwarden.yaml")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    let checked = run(&sandbox, &["config", "check"]);
    assert_eq!(
        (checked.code, checked.out.as_str()),
        (0, "toolwarden.yaml can be used: 2 servers\n"),
        "{checked:?}"
    );
    let shown = run(&sandbox, &["config", "show", "--format", "json"]);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(
        shown["servers"]["docs"]["env"],
        json!({"DOCS_TOKEN": "***"})
    );
    // Agents connect without a key, and are not administrators.
    assert_eq!(shown["identity"]["anonymous"], "ada");
    assert_eq!(shown["identity"]["admins"], json!(null));
    let yaml = run(&sandbox, &["config", "show"]).out;
    assert!(
        yaml.contains("\n    env:\n      DOCS_TOKEN: \"***\"\n"),
        "{yaml}"
    );
}

#[test]
fn importer_can_call_and_agents_cannot_administer() {
    let sandbox = Sandbox::new();
    let program = cargo_bin!("toolwarden").to_str().unwrap();
    let file = json!({"mcpServers": {"shop": {"command": program, "args": ["__demo-server"]}}});
    sandbox.write("claude.json", &file.to_string());
    let told = run(&sandbox, &["import", "claude", "claude.json"]);
    assert_eq!(told.code, 0, "{told:?}");
    let served = super::ServedGateway::start(&sandbox, &[]);
    assert_eq!(served.tools().len(), 7);
    let mut stream = TcpStream::connect(&served.address).unwrap();
    let host = &served.address;
    let asked = format!("GET /api/v1/audit HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(asked.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    let listed = run(&sandbox, &["watch", "list", "--store", "toolwarden.db"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    assert!(listed.out.contains("refund_order"), "{listed:?}");
}

#[test]
fn no_file_is_replaced_unasked() {
    let sandbox = Sandbox::new();
    claude(&sandbox);
    sandbox.write("toolwarden.yaml", "# mine\n");
    let told = run(&sandbox, &["import", "claude", "claude.json"]);
    let refused = "error: toolwarden.yaml already exists\n  help: replace it with --force, or write elsewhere with --output\n";
    assert_eq!((told.code, told.err.as_str()), (2, refused));
    assert_eq!(sandbox.read("toolwarden.yaml"), "# mine\n");
    let forced = run(&sandbox, &["import", "claude", "claude.json", "--force"]);
    assert_eq!(forced.code, 0, "{forced:?}");
    assert!(
        sandbox
            .read("toolwarden.yaml")
            .contains("\nservers:\n  shop:\n")
    );
}

#[test]
fn a_client_is_found_in_its_usual_place_or_read_from_standard_input() {
    let sandbox = Sandbox::new();
    let nowhere = run(&sandbox, &["import", "cursor"]);
    assert_eq!(nowhere.code, 2);
    assert!(
        nowhere.err.contains("not found: .cursor/mcp.json\n"),
        "{nowhere:?}"
    );
    let text = r#"{"mcpServers": {"web": {"url": "https://mcp.example/mcp"}}}"#;
    sandbox.write(".cursor/mcp.json", text);
    let found = run(&sandbox, &["import", "cursor", "--output", "-"]);
    assert_eq!(found.code, 0, "{found:?}");
    let file = std::fs::File::open(sandbox.path(".cursor/mcp.json")).unwrap();
    let mut command = sandbox.command();
    command
        .args(["import", "cursor", "-", "--output", "-"])
        .stdin(Stdio::from(file));
    assert_eq!(command_output(command.output().unwrap()).out, found.out);
    let expected = "servers:\n  web:\n    url: \"https://mcp.example/mcp\"\n";
    assert!(found.out.contains(expected), "{}", found.out);
}

#[test]
fn every_mistake_is_reported_with_its_position() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", BROKEN);
    let told = run(&sandbox, &["config", "check"]);
    let error = "error: toolwarden.yaml cannot be used: 4 mistakes\n";
    assert_eq!(
        (told.code, told.out.as_str(), told.err.as_str()),
        (2, MISTAKES, error)
    );
    let github = run(&sandbox, &["config", "check", "--format", "github"]);
    assert_eq!(github.code, 2);
    assert_eq!(github.out.lines().count(), 4, "{}", github.out);
    assert!(
        github.out.starts_with(
            "::error file=toolwarden.yaml,line=1,col=1,title=settings mistake::listen.address: "
        ),
        "{}",
        github.out
    );
    let json = run(&sandbox, &["config", "check", "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(document["schema"], "toolwarden/config/check/v1");
    assert_eq!(document["findings"].as_array().unwrap().len(), 4);
}

const BROKEN: &str = "\
listen: nowhere
servers:
  web: {url: 'ftp://x'}
tools: {}
identty: {}
";

const MISTAKES: &str = "\
toolwarden.yaml:1:1: error listen.address: `nowhere` is not an address to listen on; write 127.0.0.1:8700 or [::1]:8700
toolwarden.yaml:3:9: error servers.web.url: `ftp://x` is not an http or https address
toolwarden.yaml:4:1: error tools: `tools` is a key of a policy; write it under `policy`, or name the policy file there
toolwarden.yaml:5:1: error identty: unknown key `identty`, did you mean `identity`?
";

#[test]
fn the_policy_is_checked_too_and_servers_where_it_is_wished() {
    let sandbox = Sandbox::new();
    let program = json!(cargo_bin!("toolwarden").to_str().unwrap());
    let servers = format!(
        "policy: policy.yaml\nidentity: {{anonymous: ada}}\nservers:\n  shop: {{command: {program}, args: [__demo-server]}}\n  gone: ./no-such-program\n"
    );
    sandbox.write("toolwarden.yaml", &servers);
    sandbox.write("policy.yaml", "tools: {a: {groups: 5}}\nprinciples: {}\n");
    let told = run(&sandbox, &["config", "check"]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(
        told.out
            .lines()
            .all(|line| line.starts_with("policy.yaml:")),
        "{told:?}"
    );
    assert_eq!(told.out.lines().count(), 2, "{told:?}");
    sandbox.write(
        "policy.yaml",
        "tools: {}\nprincipals: {\"*\": {groups: [\"*\"]}}\n",
    );
    assert_eq!(run(&sandbox, &["config", "check"]).code, 0);
    let started = run(&sandbox, &["config", "check", "--start"]);
    assert_eq!(
        (started.code, started.err.as_str()),
        (3, "shop: 7 tools\n"),
        "{started:?}"
    );
    assert!(
        started
            .out
            .contains("error servers.gone: program `./no-such-program` not found"),
        "{started:?}"
    );
}

#[test]
fn the_schema_is_json() {
    let sandbox = Sandbox::new();
    let told = run(&sandbox, &["config", "schema"]);
    let schema: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(
        (told.code, &schema["title"]),
        (0, &json!("toolwarden.yaml"))
    );
}

#[test]
fn a_key_is_shown_once_and_its_digest_works() {
    let sandbox = Sandbox::new();
    let told = run(&sandbox, &["key", "new", "--principal", "ci"]);
    assert_eq!(told.code, 0);
    assert!(
        told.out.starts_with("tw_") && told.out.lines().count() == 1,
        "{told:?}"
    );
    assert!(!told.err.contains(told.out.trim()), "{told:?}");
    let (_, settings) = told.err.split_once("\n\n").unwrap();
    sandbox.write("toolwarden.yaml", &format!("servers: {{}}\n{settings}"));
    let shown = run(&sandbox, &["config", "show", "--format", "json"]);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(shown["identity"]["api_keys"][0]["principal"], "ci");
    let json = run(&sandbox, &["key", "new", "--format", "json"]);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["sha256"].as_str().unwrap().len(), 64);
}

#[test]
fn alerts_are_tried_out() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", "servers: {}\n");
    let nobody = run(&sandbox, &["alerts", "test"]);
    assert_eq!(nobody.code, 2, "{nobody:?}");
    assert!(
        nobody
            .err
            .starts_with("error: toolwarden.yaml names no alert target\n"),
        "{nobody:?}"
    );
    // No process listens on port 1.
    sandbox.write(
        "toolwarden.yaml",
        "servers: {}\nalerts: {ops: {webhook: 'http://127.0.0.1:1/hook'}}\n",
    );
    let failed = run(&sandbox, &["alerts", "test"]);
    assert_eq!(failed.code, 3, "{failed:?}");
    assert!(
        failed.out.starts_with("failed  ops: 127.0.0.1"),
        "{failed:?}"
    );
    let unknown = run(&sandbox, &["alerts", "test", "--target", "opps"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    let none = run(&sandbox, &["alerts", "deliveries"]);
    assert_eq!(
        (none.code, none.out.as_str()),
        (0, "No deliveries.\n"),
        "{none:?}"
    );
}
