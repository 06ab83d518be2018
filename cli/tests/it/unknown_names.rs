//! Stores, servers, scopes and tools that do not exist: a misspelled name must not read as "nothing".

use super::sandbox::{CommandOutput, Sandbox, command_output};

const ECHO: &str =
    r#"{"name": "echo", "description": "Say it", "inputSchema": {"type": "object"}}"#;

fn run(sandbox: &Sandbox, args: &[&str]) -> CommandOutput {
    command_output(sandbox.command().args(args).output().unwrap())
}

/// A sandbox with one pinned tool of the server `shop`.
fn pinned() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("echo.json", ECHO);
    let baseline = [
        "baseline",
        "echo.json",
        "--server",
        "shop",
        "--store",
        "s.db",
    ];
    sandbox.watch_to(0, &baseline);
    sandbox
}

/// Commands that read a store, without the option that names it.
const READERS: &[&[&str]] = &[
    &["watch", "list"],
    &["watch", "list", "--format", "json"],
    &["watch", "alerts"],
    &["watch", "alerts", "--format", "json"],
    &["watch", "alerts", "--compat"],
    &["watch", "approve"],
    &["watch", "approve", "--all"],
    &["watch", "show", "echo"],
    &["watch", "history", "echo"],
    &["watch", "lock", "--from-store"],
    &["alerts", "deliveries"],
];

#[test]
fn a_store_that_does_not_exist_is_an_error_of_every_command_that_reads_it() {
    let sandbox = pinned();
    for command in READERS {
        let said = run(&sandbox, &[command, &["--store", "typo.db"][..]].concat());
        let expected = "error: there is no store: typo.db does not exist\n  help: name the store with --store or TOOLWARDEN_STORE; this command does not create one\n";
        assert_eq!(
            (said.code, said.out.as_str(), said.err.as_str()),
            (3, "", expected),
            "{command:?}"
        );
        assert!(!sandbox.path("typo.db").exists(), "{command:?}");
    }
}

#[test]
fn the_store_of_the_environment_must_exist_too() {
    let sandbox = pinned();
    for command in READERS.iter().filter(|it| it.first() == Some(&"watch")) {
        let mut started = sandbox.command();
        started.args(*command).env("TOOLWARDEN_STORE", "typo.db");
        let said = command_output(started.output().unwrap());
        assert_eq!((said.code, said.out.as_str()), (3, ""), "{command:?}");
        assert!(
            said.err
                .starts_with("error: there is no store: typo.db does not exist\n"),
            "{command:?}: {said:?}"
        );
    }
}

#[test]
fn the_users_own_store_may_be_missing() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.watch_to(0, &["list"]).out, "nothing is pinned\n");
    assert_eq!(
        sandbox.watch_to(0, &["alerts"]).out,
        "No alerts recorded.\n"
    );
    assert_eq!(
        sandbox.watch_to(0, &["approve"]).out,
        "no changes are pending\n"
    );
    for command in ["list", "alerts", "approve"] {
        let said = sandbox.watch_to(2, &[command, "--server", "shop"]);
        assert!(
            said.err
                .starts_with("error: nothing is pinned for server `shop`\n"),
            "{command}: {said:?}"
        );
    }
}

#[test]
fn a_server_that_does_not_exist_is_an_error_with_a_suggestion() {
    let sandbox = pinned();
    for command in ["list", "alerts", "approve"] {
        let args = [command, "--store", "s.db", "--server", "shpo"];
        let said = sandbox.watch_to(2, &args);
        let expected = "error: no server is called `shpo`, did you mean `shop`?\n  help: `toolwarden watch list` shows every server\n";
        assert_eq!((said.out.as_str(), said.err.as_str()), ("", expected));
        sandbox.watch_to(0, &[command, "--store", "s.db", "--server", "shop"]);
    }
    // One right name does not excuse a wrong one.
    for command in ["list", "alerts"] {
        let both = ["--store", "s.db", "--server", "shop", "--server", "nope"];
        let said = sandbox.watch_to(2, &[&[command][..], &both].concat());
        assert!(
            said.err.starts_with("error: no server is called `nope`\n"),
            "{said:?}"
        );
    }
}

#[test]
fn a_scope_that_does_not_exist_is_an_error_with_a_suggestion() {
    let sandbox = pinned();
    for command in [&["approve"][..], &["show", "echo"], &["history", "echo"]] {
        let args = [command, &["--store", "s.db", "--scope", "defualt"]].concat();
        let said = sandbox.watch_to(2, &args);
        let expected = "error: no server has the scope `defualt`, did you mean `default`?\n  help: `toolwarden watch list` shows every server with its scope\n";
        assert_eq!((said.out.as_str(), said.err.as_str()), ("", expected));
    }
}

#[test]
fn alerts_of_a_tool_that_does_not_exist_are_an_error_with_a_suggestion() {
    let sandbox = pinned();
    let said = sandbox.watch_to(2, &["alerts", "--store", "s.db", "--tool", "ehco"]);
    assert!(
        said.err
            .starts_with("error: no tool is called `ehco`, did you mean `echo`?\n"),
        "{said:?}"
    );
    sandbox.watch_to(0, &["alerts", "--store", "s.db", "--tool", "echo"]);
}

#[test]
fn a_lock_file_without_the_server_names_the_servers_it_has() {
    let sandbox = pinned();
    let lock = [
        "lock",
        "echo.json",
        "--server",
        "shop",
        "--output",
        "t.lock",
    ];
    sandbox.watch_to(0, &lock);
    let check = ["check", "echo.json", "--lock", "t.lock", "--server", "shpo"];
    let said = sandbox.watch_to(2, &check);
    let expected = "error: t.lock has no server `shpo`; it has `shop`\n  help: correct --server; to pin a new server, review its tools, run `toolwarden watch lock`, and commit the file\n";
    assert_eq!(said.err, expected);
}
