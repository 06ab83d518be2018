//! Errors in the words of the command line and of the file, and output in the form that was asked for.

use serde_json::Value;

use super::sandbox::{CommandOutput, Sandbox, command_output};

fn run(sandbox: &Sandbox, args: &[&str]) -> CommandOutput {
    command_output(sandbox.command().args(args).output().unwrap())
}

#[test]
fn a_usage_error_has_the_colour_that_the_command_line_asks_for() {
    let sandbox = Sandbox::new();
    let told = |color: &[&str]| {
        let mut command = sandbox.command();
        command.args(["watch", "list", "--typo"]).args(color);
        let said = command_output(command.env("CLICOLOR_FORCE", "1").output().unwrap());
        assert_eq!(said.code, 2, "{said:?}");
        said.err
    };
    assert!(told(&[]).contains('\u{1b}'));
    assert!(told(&["--color", "always"]).contains('\u{1b}'));
    assert!(!told(&["--color", "never"]).contains('\u{1b}'));
    assert!(!told(&["--color=never"]).contains('\u{1b}'));
}

#[test]
fn values_of_options_are_refused_in_plain_words() {
    let sandbox = Sandbox::new();
    sandbox.write("policy.yaml", "tools: {}\n");
    sandbox.write("a.json", r#"{"name": "a", "inputSchema": {}}"#);
    let check = ["watch", "check", "a.json", "--timeout"];
    let guard = ["guard", "available", "--principal", "p", "--load"];
    for (args, value, message) in [
        (&check[..], "x", "give a time such as 90, 90s or 2m"),
        (&check, "0", "give a time such as 90, 90s or 2m"),
        (&guard, "many", "give a number such as 0.8"),
        (&guard, "inf", "give a number such as 0.8"),
    ] {
        let said = run(&sandbox, &[args, &[value]].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?} {value}");
        assert!(said.err.contains(message), "{args:?} {value}: {said:?}");
    }
    for value in ["90", "90s", "2m"] {
        let said = run(&sandbox, &[&check[..], &[value]].concat());
        assert_eq!(said.code, 0, "{value}: {said:?}");
    }
}

#[test]
fn the_rules_of_guard_lint_have_a_json_form() {
    let sandbox = Sandbox::new();
    let text = run(&sandbox, &["guard", "lint", "--rules"]);
    let json = run(&sandbox, &["guard", "lint", "--rules", "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(document["schema"], "toolwarden/guard/rules/v1");
    let rules = document["rules"].as_array().unwrap().iter();
    let lines: String = rules
        .map(|rule| {
            let word = |key: &str| rule[key].as_str().unwrap().to_owned();
            format!("{:<20} {}\n", word("id"), word("finds"))
        })
        .collect();
    assert_eq!((json.code, lines), (0, text.out));
    let sarif = run(&sandbox, &["guard", "lint", "--rules", "--format", "sarif"]);
    assert_eq!((sarif.code, sarif.out.as_str()), (2, ""), "{sarif:?}");
}

#[test]
fn a_lock_file_that_is_not_one_is_refused_in_its_own_words() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", r#"{"name": "a", "inputSchema": {}}"#);
    sandbox.write("t.lock", "null\n");
    let said = sandbox.watch_to(2, &["check", "a.json", "--lock", "t.lock"]);
    assert!(
        said.err
            .contains("expected an object with the keys of a lock file"),
        "{said:?}"
    );
}

#[test]
fn a_folder_without_captures_is_not_replayed() {
    let sandbox = Sandbox::new();
    sandbox.write("empty/README", "nothing here\n");
    let said = run(
        &sandbox,
        &["probe", "replay", "empty", "--listen", "127.0.0.1:0"],
    );
    let expected = "error: no captured exchanges in empty\n";
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{said:?}");
    assert!(said.err.starts_with(expected), "{said:?}");
}

#[test]
fn a_policy_in_the_place_of_settings_is_recognized_by_every_key() {
    let sandbox = Sandbox::new();
    for key in [
        "tools",
        "resources",
        "prompts",
        "skills",
        "methods",
        "groups",
        "roles",
        "principals",
        "states",
        "unlisted",
        "rate",
        "mode",
    ] {
        sandbox.write("toolwarden.yaml", &format!("{key}: {{}}\n"));
        let said = run(&sandbox, &["config", "check"]);
        assert_eq!(said.code, 2, "{key}");
        let expected = format!("`{key}` is a key of a policy");
        assert!(said.out.contains(&expected), "{key}: {said:?}");
    }
}
