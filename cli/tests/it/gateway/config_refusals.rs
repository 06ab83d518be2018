//! `config check` refuses exactly the settings that `serve` refuses, in the same words and at the same place.

use crate::sandbox::{CommandOutput, Sandbox, command_output};

fn run(sandbox: &Sandbox, args: &[&str]) -> CommandOutput {
    command_output(sandbox.command().args(args).output().unwrap())
}

const ISSUER: &str = "issuer: 'https://one.example', audience: a";

/// Settings that no gateway starts with: their text, and the place and message of the refusal.
fn refused() -> Vec<(String, &'static str, &'static str)> {
    let caller = "servers: {}\nidentity: {anonymous: ada}\n";
    let roles = format!(
        "servers: {{}}\npolicy: {{tools: {{}}, roles: {{clerk: {{}}}}}}\nidentity:\n  jwt:\n    - {{{ISSUER}, roles: {{claim: groups, map: {{staff: [clrek]}}}}}}\n"
    );
    vec![
        (
            "{}\n".to_owned(),
            "toolwarden.yaml:1:1: ",
            "no caller could use the gateway: name callers under `identity`",
        ),
        (
            "servers: {}\nidentity: {admins: [ops]}\n".to_owned(),
            "toolwarden.yaml:2:1: ",
            "no caller could use the gateway: name callers under `identity`",
        ),
        (
            format!("{caller}policy: policy.yaml\n"),
            "policy.yaml:5:7: ",
            "the condition of group `night` asks about `request.region`, which no client may send",
        ),
        (
            format!(
                "{caller}policy:\n  tools: {{}}\n  groups:\n    night: {{when: 'request.region == \"eu\"'}}\n"
            ),
            "toolwarden.yaml:6:13: ",
            "the condition of group `night` asks about `request.region`, which no client may send",
        ),
        (
            roles,
            "toolwarden.yaml:5:7: ",
            "`identity.jwt` gives the role `clrek` for `staff`, and the policy has no such role",
        ),
        (
            format!(
                "{caller}listen:\n  address: 127.0.0.1:0\n  tls: {{certificate: no.pem, key: no.key}}\n"
            ),
            "toolwarden.yaml:5:3: ",
            "no.pem cannot be read",
        ),
        (
            format!("{caller}listen:\n  tls: {{certificate: text.pem, key: text.pem}}\n"),
            "toolwarden.yaml:4:3: ",
            "text.pem is not PEM with ",
        ),
        (
            format!("{caller}listen: {{hosts: ['a b']}}\n"),
            "toolwarden.yaml:3:10: ",
            "`a b` is not a host",
        ),
        (
            format!("{caller}listen: {{origins: ['nowhere']}}\n"),
            "toolwarden.yaml:3:10: ",
            "`nowhere` is not an origin",
        ),
        (
            format!(
                "servers: {{}}\nidentity:\n  jwt:\n    - {{{ISSUER}, public_key: \"-----BEGIN PUBLIC KEY-----\\nAAAA\\n-----END PUBLIC KEY-----\\n\"}}\n"
            ),
            "toolwarden.yaml:4:7: ",
            "the public key for tokens of `https://one.example` cannot be used",
        ),
    ]
}

#[test]
fn config_check_refuses_what_serve_refuses() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "policy.yaml",
        "tools: {}\nprincipals: {\"*\": {groups: [\"*\"]}}\ngroups:\n    night:\n      when: 'request.region == \"eu\"'\n",
    );
    sandbox.write("text.pem", "no certificate\n");
    for (text, place, message) in refused() {
        sandbox.write("toolwarden.yaml", &text);
        let served = run(&sandbox, &["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!((served.code, served.out.as_str()), (2, ""), "{text}");
        let checked = run(&sandbox, &["config", "check"]);
        assert_eq!(checked.code, 2, "{text}: {checked:?}");
        let line = checked.out.lines().find(|line| line.contains(" error "));
        let line = line.unwrap_or_else(|| panic!("{text}: {checked:?}"));
        assert!(
            line.starts_with(place) && line.contains(message),
            "{text}: {line}"
        );
        assert!(
            served.err.contains(place) && served.err.contains(message),
            "{text}: {served:?}"
        );
    }
}

#[test]
fn every_refusal_is_reported_at_once() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "toolwarden.yaml",
        "servers: {}\nlisten: {address: 127.0.0.1:0, hosts: ['a b'], tls: {certificate: no.pem, key: no.key}}\npolicy: {tools: {}, groups: {night: {when: 'request.region == \"eu\"'}}}\n",
    );
    let checked = run(&sandbox, &["config", "check"]);
    assert_eq!(checked.code, 2, "{checked:?}");
    assert_eq!(
        checked.err,
        "error: toolwarden.yaml cannot be used: 4 mistakes\n"
    );
    let served = run(&sandbox, &["serve"]);
    for line in checked.out.lines().filter(|line| line.contains(" error ")) {
        let (_, message) = line.split_once(": ").unwrap();
        let (_, message) = message.split_once(": ").unwrap();
        assert!(served.err.contains(message), "{message}: {served:?}");
    }
}

#[test]
fn an_administrator_that_no_credential_can_name_is_a_warning() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "toolwarden.yaml",
        "servers: {a: x}\nidentity:\n  anonymous: guest\n  admins: [guest, alice]\n",
    );
    let checked = run(&sandbox, &["config", "check"]);
    let expected = "toolwarden.yaml:4:19: warning identity.admins.1: no credential of these settings names the administrator `alice`; give it a key (`toolwarden key new --principal alice`) under `identity.api_keys`\ntoolwarden.yaml can be used: 1 server\n";
    assert_eq!((checked.code, checked.out.as_str()), (0, expected));
}

#[test]
fn resources_prompts_and_skills_are_explained_by_a_running_gateway_only() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "toolwarden.yaml",
        "servers: {a: x}\nidentity: {anonymous: ada}\n",
    );
    for option in ["--resource", "--prompt", "--skill"] {
        for file in [
            &[][..],
            &["toolwarden.yaml"],
            &["--config", "toolwarden.yaml"],
        ] {
            let args = ["explain", "--principal", "ada", option, "x"];
            let said = run(&sandbox, &[&args, file].concat());
            assert_eq!((said.code, said.out.as_str()), (2, ""), "{option} {file:?}");
            assert!(said.err.contains("--url"), "{option} {file:?}: {said:?}");
        }
    }
}

#[test]
fn a_key_is_made_only_for_a_principal_that_settings_accept() {
    let sandbox = Sandbox::new();
    for name in ["", " "] {
        let said = run(&sandbox, &["key", "new", "--principal", name]);
        assert_eq!(
            (said.code, said.out.as_str()),
            (2, ""),
            "{name:?}: {said:?}"
        );
        let settings = format!(
            "servers: {{}}\nidentity: {{api_keys: [{{principal: {name:?}, sha256: {}}}]}}\n",
            "a".repeat(64)
        );
        sandbox.write("toolwarden.yaml", &settings);
        let checked = run(&sandbox, &["config", "check"]);
        assert_eq!(checked.code, 2, "{name:?}: {checked:?}");
    }
}
