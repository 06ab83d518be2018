//! The policy of a guard command without `--policy`.

use crate::sandbox::{Sandbox, command_output};

const POLICY: &str = "tools: {pay: {required_permissions: [money]}}\n";
const OTHER: &str = "tools: {search: {}}\n";
const RENAME: &str = "Warning: toolwarden.yaml is a policy, but this name is for settings; rename it with `mv toolwarden.yaml policy.yaml`\n";
const HELP: &str = "  help: name the policy with --policy; docs/guard.md shows how to write one\n";

/// The exit code, the output and the messages of a guard command in a folder with these files.
fn guard(files: &[(&str, &str)], args: &[&str]) -> (i32, String, String) {
    let sandbox = Sandbox::new();
    for (name, text) in files {
        sandbox.write(name, text);
    }
    let mut command = sandbox.command();
    let said = command_output(command.arg("guard").args(args).output().unwrap());
    (said.code, said.out, said.err)
}

fn groups(files: &[(&str, &str)]) -> (i32, String, String) {
    guard(files, &["groups"])
}

fn lists(tool: &str) -> String {
    format!("default  {tool}\n")
}

#[test]
fn the_policy_is_policy_yaml() {
    let listed = |err: &str| (0, lists("pay"), err.to_owned());
    assert_eq!(groups(&[("policy.yaml", POLICY)]), listed(""));
    let settings = "servers: {}\npolicy: rules.yaml\n";
    let files = [("policy.yaml", POLICY), ("toolwarden.yaml", settings)];
    let other =
        "Using policy.yaml; `toolwarden serve` uses rules.yaml, which toolwarden.yaml names\n";
    assert_eq!(groups(&files), listed(other));
    let inline = ("toolwarden.yaml", "servers: {}\npolicy: {tools: {}}\n");
    assert_eq!(
        groups(&[("policy.yaml", POLICY), inline]),
        listed("Using policy.yaml; `toolwarden serve` uses the policy in toolwarden.yaml\n")
    );
    for same in [
        "policy: policy.yaml",
        "policy: ./policy.yaml",
        "servers: {}",
    ] {
        let files = [("policy.yaml", POLICY), ("toolwarden.yaml", same)];
        assert_eq!(groups(&files), listed(""), "{same}");
    }
    let files = [("policy.yaml", POLICY), ("toolwarden.yaml", OTHER)];
    let ignored = "Warning: policy.yaml is used; toolwarden.yaml is a policy too, and is ignored\n";
    assert_eq!(groups(&files), listed(ignored));
}

#[test]
fn a_policy_under_its_old_name_is_read_with_a_warning() {
    let old = [("toolwarden.yaml", POLICY)];
    assert_eq!(groups(&old), (0, lists("pay"), RENAME.to_owned()));
    // Settings have these two keys as well.
    let shared = format!("version: 1\nsessions: {{idle: 1h}}\n{POLICY}");
    let old = [("toolwarden.yaml", shared.as_str())];
    assert_eq!(groups(&old), (0, lists("pay"), RENAME.to_owned()));
    // A policy that is named needs no other name.
    let named = guard(
        &[("toolwarden.yaml", POLICY)],
        &["groups", "--policy", "toolwarden.yaml"],
    );
    assert_eq!(named, (0, lists("pay"), String::new()));
}

#[test]
fn settings_lead_to_their_policy() {
    let files = [
        ("toolwarden.yaml", "servers: {}\npolicy: rules/pay.yaml\n"),
        ("rules/pay.yaml", POLICY),
    ];
    let using = "Using rules/pay.yaml, the policy of toolwarden.yaml\n";
    assert_eq!(groups(&files), (0, lists("pay"), using.to_owned()));

    let inline = "mcpServers: {}\npolicy:\n  tools:\n    pay: {available_in_states: [paid]}\n";
    let (code, out, err) = guard(
        &[("toolwarden.yaml", inline)],
        &["lint", "--format", "github"],
    );
    assert_eq!(
        (code, err.as_str()),
        (1, "Using the policy in toolwarden.yaml\n"),
        "{out}"
    );
    let at_the_state = "file=toolwarden.yaml,line=4,col=11";
    assert!(out.contains(at_the_state), "{out}");
}

#[test]
fn a_missing_policy_is_an_error() {
    let none = "error: no policy here: policy.yaml does not exist\n";
    assert_eq!(groups(&[]), (2, String::new(), format!("{none}{HELP}")));
    let unnamed =
        "error: no policy here: policy.yaml does not exist, and toolwarden.yaml has no `policy`\n";
    assert_eq!(
        groups(&[("toolwarden.yaml", "servers: {}\n")]),
        (2, String::new(), format!("{unnamed}{HELP}"))
    );
    let (code, _, err) = groups(&[("toolwarden.yaml", "servers: {}\npolicy: gone.yaml\n")]);
    assert_eq!(code, 2);
    assert!(err.contains("gone.yaml"), "{err}");
}

#[test]
fn mistakes_are_reported_once_and_in_their_file() {
    let (code, _, err) = groups(&[("toolwarden.yaml", "tools: [\n")]);
    assert_eq!(code, 2);
    assert!(err.starts_with("error: toolwarden.yaml:"), "{err}");
    let (code, _, err) = groups(&[("toolwarden.yaml", "servers: {}\npolicy:\n  tols: {}\n")]);
    assert_eq!(code, 2);
    assert!(
        err.starts_with("error: toolwarden.yaml:3:3: ") && err.contains("`tols`"),
        "{err}"
    );
}

#[test]
fn a_settings_file_is_not_a_policy() {
    let settings = "servers: {}\npolicy: rules.yaml\n";
    let (code, out, err) = guard(
        &[("prod.yaml", settings), ("rules.yaml", POLICY)],
        &["groups", "--policy", "prod.yaml"],
    );
    let expected = "error: prod.yaml is a settings file, not a policy\n  \
                    help: name the policy file, such as the one its key `policy` names\n";
    assert_eq!((code, out.as_str(), err.as_str()), (2, "", expected));
}
