//! The table says what `run` says.

use super::failures::good_reply;
use super::{ProbeSandbox, parsed, serving};

fn verdicts(table: &str) -> Vec<String> {
    let row = table.lines().find(|it| it.starts_with("| **verdict** |"));
    let cells = row.unwrap().split(" | ").skip(2);
    cells
        .map(|it| it.trim_end_matches(" |").to_owned())
        .collect()
}

#[test]
fn a_column_is_as_red_as_the_run() {
    let probe = ProbeSandbox::new();
    let run = [
        "run",
        "--old",
        "deepseek",
        "--new",
        "minimax",
        "--from-fixtures",
    ];
    assert_eq!(probe.run(&run).code, 1);
    let table = [
        "compare-table",
        "-p",
        "deepseek",
        "-p",
        "minimax",
        "--from-fixtures",
    ];
    let said = probe.run_to(1, &table);
    assert_eq!(
        verdicts(&said.out),
        ["baseline", "✗ breaking"],
        "{}",
        said.out
    );
    assert!(
        said.out.contains("What breaks from `deepseek/"),
        "{}",
        said.out
    );
    let json = parsed(&probe.run_to(1, &[&table[..], &["-f", "json"]].concat()).out);
    assert_eq!(json["comparisons"][0]["verdict"], "fail");
    let whole = parsed(&probe.run_to(1, &[&run[..], &["-f", "json"]].concat()).out);
    assert_eq!(json["comparisons"], whole["comparisons"]);
    let alike = [
        "compare-table",
        "-p",
        "deepseek",
        "-p",
        "glm",
        "--from-fixtures",
    ];
    let said = probe.run(&alike);
    assert_eq!(
        said.code,
        probe
            .run(&[
                "run",
                "--old",
                "deepseek",
                "--new",
                "glm",
                "--from-fixtures"
            ])
            .code
    );
}

#[test]
fn snapshots_are_columns_and_a_provider_without_a_key_is_left_out() {
    let probe = ProbeSandbox::new();
    for name in ["deepseek", "minimax"] {
        let file = format!("{name}.json");
        probe.run(&["snapshot", "-p", name, "--from-fixtures", "-q", "-o", &file]);
    }
    let said = probe.run_to(
        1,
        &[
            "compare-table",
            "--snapshot",
            "deepseek.json",
            "--snapshot",
            "minimax.json",
        ],
    );
    assert_eq!(
        verdicts(&said.out),
        ["baseline", "✗ breaking"],
        "{}",
        said.out
    );
    let said = probe.run_to(
        1,
        &[
            "compare-table",
            "--snapshot",
            "deepseek.json",
            "--snapshot",
            "minimax.json",
            "-p",
            "kimi",
        ],
    );
    assert!(
        said.err
            .contains("skip kimi: missing API key: set $MOONSHOT_API_KEY"),
        "{}",
        said.err
    );
    assert!(
        said.out
            .ends_with("Left out, because there is no key or no answer: `kimi`.\n\n"),
        "{}",
        said.out
    );
}

#[test]
fn a_contract_and_addresses_name_the_columns() {
    let probe = ProbeSandbox::new();
    let server = serving(good_reply());
    probe.write(
        "suite.yaml",
        include_str!("../../../../examples/suite.weather.yaml"),
    );
    probe.write(
        "contract.yaml",
        "suite: suite.yaml\nproviders:\n  one: {base_url: http://127.0.0.1:9/v1, model_id: m}\n  two: {base_url: http://127.0.0.1:9/v1, model_id: m}\n",
    );
    let (one, two) = (
        format!("one={}", server.url()),
        format!("two={}", server.url()),
    );
    let said = probe.run_to(
        0,
        &[
            "compare-table",
            "--contract",
            "contract.yaml",
            "--base-url",
            &one,
            "--base-url",
            &two,
        ],
    );
    assert!(
        said.out.contains("| tool | field | one | two |"),
        "{}",
        said.out
    );
    assert_eq!(
        verdicts(&said.out),
        ["baseline", "✓ equivalent"],
        "{}",
        said.out
    );
}

#[test]
fn a_table_that_compares_too_little_is_not_a_pass() {
    let probe = ProbeSandbox::new();
    probe.run(&[
        "snapshot",
        "-p",
        "deepseek",
        "--from-fixtures",
        "-q",
        "-o",
        "a.json",
    ]);
    let nothing = "nothing was compared: a comparison needs two measured columns";
    let alone = ["compare-table", "--snapshot", "a.json"];
    let without_key = [&alone[..], &["-p", "kimi"]].concat();
    for args in [&alone[..], &without_key] {
        let said = probe.run_to(3, args);
        assert!(said.err.contains(nothing), "{}", said.err);
        probe.run_to(0, &[args, &["--compat", "tooldrift"]].concat());
    }
    let equal = [&alone[..], &["--snapshot", "a.json"]].concat();
    let judged = probe.run(&["diff", "a.json", "a.json"]).code;
    let said = probe.run_to(judged, &equal);
    assert!(!said.err.contains(nothing), "{}", said.err);
    // Two equal columns are no pass either if a third one is missing.
    let said = probe.run_to(3, &[&equal[..], &["-p", "kimi"]].concat());
    assert!(said.err.contains("skip kimi"), "{}", said.err);
}
