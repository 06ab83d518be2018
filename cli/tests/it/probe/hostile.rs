//! Names that are meant for a terminal, a workflow or a table are only names.

use serde_json::json;
use toolwarden_testkit::provider::{chat_completion, tool_call};

use super::{ProbeSandbox, parsed};

const NAME: &str = "[/red]\u{1b}[31m|x\n::error::gone\u{202e}";
const KEY: &str = "[red]y\u{7}</td>";

/// A snapshot of a reply that calls an undeclared tool with an undeclared argument.
fn with_snapshots() -> ProbeSandbox {
    let probe = ProbeSandbox::new();
    let arguments = json!({"location": "x", (KEY): 1}).to_string();
    let calls = json!([
        tool_call("call_0a1b2c3d4e", "get_weather", &arguments),
        tool_call("call_1a1b2c3d4e", NAME, &arguments),
    ]);
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    probe.write(
        "fixture.json",
        &chat_completion(&message, &json!("[bold]\u{1b}stop")).to_string(),
    );
    probe.run_to(
        0,
        &[
            "snapshot",
            "-p",
            "deepseek",
            "--from-fixtures",
            "-q",
            "-o",
            "old.json",
        ],
    );
    let taken = [
        "snapshot",
        "-p",
        "qwen",
        "--fixture",
        "fixture.json",
        "-o",
        "new.json",
    ];
    let said = probe.run_to(0, &taken);
    assert!(
        said.out
            .contains("[/red]\\u{1b}[31m|x\\u{a}::error::gone\\u{202e}"),
        "{}",
        said.out
    );
    assert!(said.out.contains("[red]y\\u{7}<~1td>"), "{}", said.out);
    assert_plain("snapshot", &said.out);
    let taken = ["--compat", "tooldrift", "-o", "new-1.json"];
    probe.run_to(
        0,
        &[
            &["snapshot", "-q", "-p", "qwen", "--fixture", "fixture.json"],
            &taken[..],
        ]
        .concat(),
    );
    let taken = ["--compat", "tooldrift", "-o", "old-1.json"];
    probe.run_to(
        0,
        &[
            &["snapshot", "-q", "-p", "deepseek", "--from-fixtures"],
            &taken[..],
        ]
        .concat(),
    );
    probe
}

fn assert_plain(what: &str, text: &str) {
    let hidden = |it: char| it.is_control() && it != '\n' || it == '\u{202e}';
    assert!(!text.contains(hidden), "{what}: {text:?}");
    assert!(
        !text.lines().any(|it| it.starts_with("::error::gone")),
        "{what}: {text}"
    );
}

#[test]
fn names_are_shown_and_not_obeyed() {
    let probe = with_snapshots();
    for (old, new) in [("old.json", "new.json"), ("old-1.json", "new-1.json")] {
        for format in ["text", "markdown", "junit", "sarif", "github", "json"] {
            let said = probe.run_to(1, &["diff", old, new, "-f", format]);
            match format {
                // A document escapes what has to be, and leaves names as they are.
                "json" | "sarif" => assert!(!said.out.contains('\u{1b}'), "{format}"),
                _ => assert_plain(format, &said.out),
            }
            let shown = match format {
                "markdown" => r"\[/red\]",
                _ => "[/red]",
            };
            assert!(said.out.contains(shown), "{format}: {}", said.out);
            match format {
                "junit" => super::formats::well_formed(&said.out),
                "sarif" => assert!(parsed(&said.out).is_object()),
                _ => {}
            }
        }
    }
}

#[test]
fn documents_have_the_names_as_they_are() {
    let probe = with_snapshots();
    let taken = parsed(&probe.read("new.json"));
    assert!(taken["undeclared"].get(NAME).is_some(), "{taken:#}");
    let one = parsed(&probe.read("new-1.json"));
    assert_eq!(one["tools"][NAME]["arg_keys"], json!([KEY, "location"]));
    let said = probe.run_to(1, &["diff", "old.json", "new.json", "-f", "json"]);
    let changes = parsed(&said.out)["comparisons"][0]["changes"].clone();
    let of_tool: Vec<_> = changes
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["tool"] == NAME)
        .collect();
    assert!(
        !of_tool.is_empty() && of_tool.iter().any(|it| it["severity"] == "breaking"),
        "{changes:#}"
    );
    let said = probe.tooldrift(&["diff", "old-1.json", "new-1.json", "-f", "json"]);
    assert_eq!(said.code, 1);
    let tools = parsed(&said.out)["tools"].clone();
    let found = tools
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["tool"] == NAME)
        .unwrap();
    assert_eq!(
        *found,
        json!({"tool": NAME, "only_in": "new", "fields": []})
    );
}
