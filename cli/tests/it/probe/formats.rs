//! Every format shows what breaks, and none of them colours what a program reads.

use std::process::Command;

use serde_json::{Value, json};

use super::failures::good_reply;
use super::{ProbeSandbox, command_output, parsed, serving};

const RUN: [&str; 6] = [
    "run",
    "--old",
    "deepseek",
    "--new",
    "qwen",
    "--from-fixtures",
];
const WRONG: &str = "\"3\" is not of type \"integer\"";

/// A probe with snapshots of two providers.
fn with_snapshots() -> ProbeSandbox {
    let probe = ProbeSandbox::new();
    for provider in ["deepseek", "qwen"] {
        let file = format!("{provider}.json");
        probe.run_to(
            0,
            &[
                "snapshot",
                "-p",
                provider,
                "--from-fixtures",
                "-q",
                "-o",
                &file,
            ],
        );
    }
    probe
}

/// The report of `run` and of `diff`, which are one.
fn report(probe: &ProbeSandbox, format: &str) -> String {
    let run = probe.run_to(1, &[&RUN[..], &["--format", format]].concat());
    let diff = probe.run_to(
        1,
        &["diff", "deepseek.json", "qwen.json", "--format", format],
    );
    // The one is about the suite, the other about the file.
    assert_eq!(
        run.out,
        diff.out.replace("qwen.json", "weather"),
        "{format}"
    );
    assert_eq!((run.err.as_str(), diff.err.as_str()), ("", ""), "{format}");
    run.out
}

#[test]
fn json_has_every_change_with_its_pointer() {
    let document = parsed(&report(&with_snapshots(), "json"));
    assert_eq!(document["schema"], "toolwarden/probe/comparison/v1");
    let comparison = &document["comparisons"][0];
    let changes = comparison["changes"].as_array().unwrap();
    let days = changes
        .iter()
        .find(|it| it["field"] == "arg_nesting:days")
        .unwrap();
    let note = format!("`type`: {WRONG} (never before, always now)");
    // The same change has the same id in every run.
    assert_eq!(
        *days,
        json!({
            "id": "2e66f10405ae", "tool": "get_forecast", "field": "arg_nesting:days", "pointer": "/days",
            "severity": "breaking", "before": "integer", "after": "string", "note": note,
        })
    );
    assert_eq!(comparison["verdict"], "fail");
    assert_eq!(document["measured"][1]["measured"], 1);
}

#[test]
fn markdown_junit_sarif_and_github_show_what_breaks() {
    let probe = with_snapshots();
    let markdown = report(&probe, "markdown");
    assert!(
        markdown.contains("| error |") && markdown.contains(WRONG),
        "{markdown}"
    );

    let junit = report(&probe, "junit");
    assert!(junit.starts_with("<?xml "), "{junit}");
    assert!(
        junit.contains("<failure ") && junit.contains("&quot;3&quot; is not of type"),
        "{junit}"
    );
    well_formed(&junit);

    let sarif = parsed(&report(&probe, "sarif"));
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let days = results
        .iter()
        .find(|it| it["ruleId"] == "probe/arg_nesting" && it["level"] == "error");
    let days = days.unwrap();
    let pair = "deepseek/deepseek-chat → qwen/qwen-plus";
    let why = format!("`type`: {WRONG} (never before, always now)");
    assert_eq!(
        days["message"]["text"],
        format!("get_forecast: {pair}: arg_nesting:days: integer → string; {why}")
    );
    let place = &days["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(place, "weather");

    let github = report(&probe, "github");
    let errors: Vec<&str> = github
        .lines()
        .filter(|it| it.starts_with("::error "))
        .collect();
    let line = |rule: &str, text: &str| {
        format!("::error file=weather,line=1,col=1,title={pair} {rule}::{text}")
    };
    let sent = "arguments_encoding: json_string → object; \
                how arguments are sent changed: object (never before, always now) (at )";
    let nesting = format!("get_forecast: arg_nesting:days: integer → string; {why} (at /days)");
    let garbled =
        "garbles: the arguments of `get_weather` reach the program as an object instead of a text";
    let rejected = "raises: ValidationError: a call is not of the form that the message requires";
    let client = |name: &str, version: &str, what: &str| {
        let text = format!(
            "qwen/qwen-plus: client_break: 0 of 1 → 1 of 1; {name} {version} {what} \
             (never before, always now) (at /replies/notes/client-{name})"
        );
        line("client_break", &text)
    };
    assert_eq!(
        errors,
        [
            line("arg_nesting", &nesting),
            line("arguments_encoding", &format!("get_forecast: {sent}")),
            line("arguments_encoding", &format!("get_weather: {sent}")),
            client("langchain-openai", "1.7.3", rejected),
            client("openai-node", "6.49.0", garbled),
            client("openai-python", "3.51.0", garbled),
        ]
    );
}

/// Python reads XML wherever our tests run.
pub(super) fn well_formed(xml: &str) {
    let script = "import sys, xml.dom.minidom as it; it.parseString(sys.argv[1].encode())";
    let read = Command::new("python3")
        .args(["-c", script, xml])
        .output()
        .unwrap();
    assert!(
        read.status.success(),
        "{xml}\n{}",
        String::from_utf8_lossy(&read.stderr)
    );
}

#[test]
fn what_only_warns_fails_if_asked_for() {
    let probe = with_snapshots();
    let mut taken = parsed(&probe.read("deepseek.json"));
    let swapped = taken
        .to_string()
        .replace("\"tool_calls\"", "\"function_call\"");
    taken = parsed(&swapped);
    probe.write("warned.json", &taken.to_string());
    let diff = ["diff", "deepseek.json", "warned.json"];
    let severities = |fail_on: &[&str], code| -> Vec<Value> {
        let said = probe.run_to(code, &[&diff[..], fail_on, &["-f", "json"]].concat());
        let changes = parsed(&said.out)["comparisons"][0]["changes"].clone();
        changes
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["severity"].clone())
            .collect()
    };
    for (fail_on, code) in [
        (&[][..], 0),
        (&["--fail-on", "breaking"], 0),
        (&["--fail-on", "any"], 1),
    ] {
        let found = severities(fail_on, code);
        assert!(
            found.contains(&json!("warning")) && !found.contains(&json!("breaking")),
            "{found:?}"
        );
    }
    let said = probe.run_to(
        0,
        &[&diff[..], &["--fail-on", "any", "--exit-zero"]].concat(),
    );
    assert!(
        said.out.contains("FAIL — drift in 2 of 2 tool(s)."),
        "{}",
        said.out
    );
}

#[test]
fn nothing_is_coloured_that_a_program_reads() {
    let probe = with_snapshots();
    let mut commands: Vec<Vec<&str>> = vec![
        vec!["snapshot", "-p", "qwen", "--from-fixtures"],
        vec!["providers"],
        vec!["compare-table", "--from-fixtures"],
        vec!["snapshot", "-p", "absent"],
    ];
    for format in ["text", "json", "markdown", "junit", "sarif", "github"] {
        commands.push([&RUN[..], &["-f", format]].concat());
    }
    for args in &commands {
        for variable in ["NO_COLOR", "TERM"] {
            let mut command = probe.command(args);
            command.env(variable, "1").env_remove("CLICOLOR_FORCE");
            let said = command_output(command.output().unwrap());
            assert!(
                !said.out.contains('\u{1b}') && !said.err.contains('\u{1b}'),
                "{args:?}"
            );
        }
    }
    let coloured = probe.run(&[&RUN[..], &["--color", "always"]].concat());
    assert!(coloured.out.contains("\u{1b}[") && coloured.code == 1);
    let json = probe.run(&[&RUN[..], &["--color", "always", "-f", "json"]].concat());
    assert!(parsed(&json.out).is_object());
}

/// The text of a snapshot marks faults as errors, and another model that answers as a warning.
#[test]
fn a_snapshot_tells_warnings_from_faults() {
    let probe = ProbeSandbox::new();
    let server = serving(good_reply());
    let take = |more: &[&str]| -> Vec<String> {
        let words = ["snapshot", "--provider", "qwen", "--output", "s.json"];
        let said = probe.run_to(0, &[&words[..], more].concat());
        let marked = |it: &&str| it.starts_with("  ! ") || it.starts_with("  ✗ ");
        said.out.lines().filter(marked).map(str::to_owned).collect()
    };
    assert_eq!(
        take(&["--base-url", &server.url(), "--model", "m"]),
        [
            "  ! replies models /models: another model than the requested one answered in 1 of 1 trials (synthetic-1)"
        ]
    );
    let clients = [
        (
            "langchain-openai 1.7.3",
            "raises: ValidationError: a call is not of the form that the message requires",
        ),
        (
            "openai-node 6.49.0",
            "garbles: the arguments of `get_weather` reach the program as an object instead of a text",
        ),
        (
            "openai-python 3.51.0",
            "garbles: the arguments of `get_weather` reach the program as an object instead of a text",
        ),
    ];
    let clients = clients.map(|(client, what)| {
        let name = client.split(' ').next().unwrap();
        format!("  ✗ replies client_break /replies/notes/client-{name}: {client} {what} (1 of 1)")
    });
    let days = format!("  ✗ get_forecast wrong_type /days: `type`: {WRONG} (1 of 1)");
    assert_eq!(take(&["--from-fixtures"]), [&[days], &clients[..]].concat());
}
