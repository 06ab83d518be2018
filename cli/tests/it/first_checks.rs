//! Checks of servers that have no pins: what is pinned was compared with nothing, and must not look as if
//! it had passed.

use super::sandbox::Sandbox;

const LIST: &str = r#"{"tools": [
  {"name": "read", "description": "Read a file", "inputSchema": {"type": "object"}},
  {"name": "stat", "description": "Describe a file", "inputSchema": {"type": "object"}}
]}"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("files.json", LIST);
    sandbox
}

#[test]
fn the_first_check_says_in_every_format_that_nothing_was_compared() {
    let said = "2 tools of `local` were not pinned yet, and are now; they were compared with nothing: `read`, `stat`";
    for (format, expected) in [
        ("text", format!("{said}\n")),
        (
            "github",
            format!("::warning file=files.json,line=2,col=3,title=drift pinned::local: {said}"),
        ),
        ("sarif", "\"ruleId\": \"drift/pinned\"".to_owned()),
        ("junit", format!("<skipped message=\"{said}\"/>")),
        (
            "markdown",
            format!("**not compared**: {}", said.replace('`', "\\`")),
        ),
        ("json", "\"registered\": [".to_owned()),
    ] {
        let sandbox = sandbox();
        let first = sandbox.watch_to(0, &["check", "files.json", "--format", format]);
        assert!(first.out.contains(&expected), "{format}: {}", first.out);
        if format == "junit" {
            let passed = first.out.contains("name=\"read\"");
            assert!(!passed, "what was not compared did not pass: {}", first.out);
        }
        let second = sandbox.watch_to(0, &["check", "files.json", "--format", format]);
        assert!(!second.out.contains(said), "{format}: {}", second.out);
    }
}

#[test]
fn a_mistyped_server_is_not_pinned() {
    let sandbox = sandbox();
    sandbox.watch_to(0, &["baseline", "--server", "files", "files.json"]);
    for (args, expected) in [
        (
            &["--server", "flies"][..],
            "nothing is pinned for server `flies` (scope default), and the store has pins of other servers, did you mean `files`?",
        ),
        (
            &["--server", "files", "--scope", "admin"],
            "nothing is pinned for server `files` (scope admin), and the store has pins of other servers; it has pins in scope default",
        ),
        (
            &[],
            "nothing is pinned for server `local` (scope default), and the store has pins of other servers",
        ),
    ] {
        let check = [&["check", "files.json"], args].concat();
        let said = sandbox.watch_to(2, &check);
        assert!(said.err.contains(expected), "{}", said.err);
        assert!(said.err.contains("--new"), "{}", said.err);
        // It was not pinned meanwhile.
        sandbox.watch_to(2, &check);
    }
    let new = ["check", "--new", "--server", "flies", "files.json"];
    let said = sandbox.watch_to(0, &new);
    assert!(
        said.out.contains("they were compared with nothing"),
        "{}",
        said.out
    );
    sandbox.watch_to(0, &["check", "--server", "flies", "files.json"]);
}

#[test]
fn the_first_check_of_several_servers_pins_all_of_them() {
    let sandbox = sandbox();
    sandbox.write("more.json", LIST);
    let check = ["check", "--per-file", "files.json", "more.json"];
    let said = sandbox.watch_to(0, &check);
    assert_eq!(
        said.out.matches("compared with nothing").count(),
        2,
        "{}",
        said.out
    );
    sandbox.write("third.json", LIST);
    let with_third = [&check[..], &["third.json"]].concat();
    let said = sandbox.watch_to(3, &with_third);
    assert!(said.err.contains("server `third`"), "{}", said.err);
    assert_eq!(said.out.matches("no drift").count(), 2, "{}", said.out);
}

/// As the toolwatch document promises for one definition.
#[test]
fn one_definition_is_pinned_by_its_first_check() {
    let sandbox = sandbox();
    sandbox.write(
        "one.json",
        r#"{"name": "one", "inputSchema": {"type": "object"}}"#,
    );
    sandbox.watch_to(0, &["baseline", "--server", "files", "files.json"]);
    let one = ["check", "--tool", "one", "--schema", "one.json"];
    let said = sandbox.watch_to(0, &one);
    assert!(
        said.out.contains("it was compared with nothing"),
        "{}",
        said.out
    );
    sandbox.watch_to(0, &one);
}
