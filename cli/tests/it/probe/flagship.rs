//! The demonstration that users try first: ten fields differ, and all ten are reported.

use serde_json::Value;
use toolwarden_testkit::read_vectors;

use super::{ProbeSandbox, parsed};

const RUN: [&str; 6] = [
    "run",
    "--old",
    "deepseek",
    "--new",
    "qwen",
    "--from-fixtures",
];

/// `tool`, `field`, `old`, `new` and the original's severity of every row, in order.
fn expected(vectors: &Value) -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    for (tool, fields) in vectors["diff_fields"].as_object().unwrap() {
        for row in fields.as_array().unwrap() {
            let text = |at: usize| row[at].as_str().unwrap().to_owned();
            rows.push([tool.clone(), text(0), text(1), text(2), text(3)]);
        }
    }
    rows
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn all_ten_rows_are_printed_and_it_fails() {
    let Some(vectors) = read_vectors("probe-flagship.json") else {
        return;
    };
    let probe = ProbeSandbox::new();
    let rows = expected(&vectors);
    assert_eq!(rows.len(), 10);
    let said = probe.run_to(1, &RUN);
    let mut tool = String::new();
    let mut found = Vec::new();
    for line in said.out.lines() {
        if let Some(name) = line.strip_prefix("  ✗ ") {
            tool = name.strip_suffix(" contract drift").unwrap().to_owned();
        } else if line.starts_with("  replies") {
            break;
        } else if let Some(row) = line.strip_prefix("      ") {
            let cells: Vec<&str> = row.split("  ").map(str::trim).collect();
            let cells: Vec<&str> = cells.into_iter().filter(|it| !it.is_empty()).collect();
            assert_eq!(cells[2], "→", "{line}");
            let [field, old, new] = [cells[0], cells[1], cells[3]].map(ToOwned::to_owned);
            found.push([tool.clone(), field, old, new]);
        }
    }
    let wanted: Vec<[String; 4]> = rows
        .iter()
        .map(|[tool, field, old, new, _]| [tool, field, old, new].map(Clone::clone))
        .collect();
    assert_eq!(found, wanted, "{}", said.out);
    let verdict = "│ FAIL — BREAKING drift in 2 of 2 tool(s). Exit 1. │";
    assert!(said.out.contains(verdict), "{}", said.out);
    assert_eq!(said.err, "");

    let said = probe.run_to(1, &[&RUN[..], &["--format", "json"]].concat());
    let comparison = &parsed(&said.out)["comparisons"][0];
    let changes = comparison["changes"].as_array().unwrap().iter();
    let found: Vec<[String; 4]> = changes
        .take(10)
        .map(|it| ["tool", "field", "before", "after"].map(|key| text(&it[key])))
        .collect();
    assert_eq!(found, wanted);
    assert_eq!(comparison["verdict"], "fail");
}

/// What the schema allows does not break callers, whatever the original calls it.
#[test]
fn severities_go_by_the_schema() {
    let said = ProbeSandbox::new().run_to(1, &[&RUN[..], &["--format", "json"]].concat());
    let document = parsed(&said.out);
    let changes = document["comparisons"][0]["changes"].as_array().unwrap();
    let found: Vec<String> = changes
        .iter()
        .map(|it| {
            let tool = it["tool"].as_str().unwrap_or("replies");
            format!("{tool} {} {}", text(&it["field"]), text(&it["severity"]))
        })
        .collect();
    assert_eq!(
        found,
        [
            "get_forecast arg_keys info",
            "get_forecast arg_nesting:days breaking",
            "get_forecast arg_nesting:include info",
            "get_forecast arg_nesting:unit info",
            "get_forecast arguments_encoding breaking",
            "get_forecast tool_call_id_format warning",
            "get_forecast finish_reason warning",
            "get_weather arguments_encoding breaking",
            "get_weather tool_call_id_format warning",
            "get_weather finish_reason warning",
            "replies client_break breaking",
            "replies client_break breaking",
            "replies client_break breaking",
            "replies finish_consistency warning",
            "replies note info",
        ]
    );
    assert_eq!(changes[1]["pointer"], "/days");
    let broken = changes.iter().filter(|it| it["field"] == "client_break");
    let clients: Vec<String> = broken.map(|it| text(&it["pointer"])).collect();
    assert_eq!(
        clients,
        ["langchain-openai", "openai-node", "openai-python"]
            .map(|it| format!("/replies/notes/client-{it}"))
    );
}

/// The table for people who write about models, to the byte.
#[test]
fn the_table_is_the_published_one() {
    let table = "\
### `tool_calls` contract comparison — suite `weather`

| tool | field | deepseek | qwen |
|---|---|---|---|
| **get_forecast** | emitted | ✓ | ✓ |
|  | **Δ arg_keys** | `days, include, location, unit` | `days, location` |
|  | **Δ args_encoding** | `json_string` | `object` |
|  | parallel_arity | 1 | 1 |
|  | **Δ id_format** | `openai` | `custom` |
|  | **Δ finish_reason** | `tool_calls` | `stop` |
| **get_weather** | emitted | ✓ | ✓ |
|  | arg_keys | `location, unit` | `location, unit` |
|  | **Δ args_encoding** | `json_string` | `object` |
|  | parallel_arity | 1 | 1 |
|  | **Δ id_format** | `openai` | `custom` |
|  | **Δ finish_reason** | `tool_calls` | `stop` |

> Rows marked `Δ` differ across providers — those are the tool-call contract drifts to handle before swapping models. Columns shown: `deepseek`, `qwen`.

";
    let probe = ProbeSandbox::new();
    let args = [
        "compare-table",
        "--provider",
        "deepseek",
        "--provider",
        "qwen",
        "--from-fixtures",
    ];
    assert_eq!(probe.tooldrift(&args).out, table);
    let compat = [&args[..], &["--compat", "tooldrift"]].concat();
    assert_eq!(probe.run_to(0, &compat).out, table);
    // Our own table has the verdict of `run`, and its exit code.
    let ours = probe.run_to(1, &args).out;
    let verdict = "| **verdict** | against `deepseek` | baseline | ✗ breaking |\n";
    assert!(ours.contains(verdict), "{ours}");
    assert_eq!(
        ours.replace(verdict, "").find(table.trim_end()),
        Some(0),
        "{ours}"
    );
    let written = probe.run_to(0, &[&compat[..], &["-o", "table.md"]].concat());
    assert_eq!(
        (written.out.as_str(), probe.read("table.md")),
        ("", table.to_owned())
    );
    let args = [
        "compare-table",
        "-p",
        "deepseek",
        "-p",
        "openai",
        "--from-fixtures",
    ];
    // With one column nothing is compared.
    let said = probe.run_to(3, &args);
    assert!(
        said.out.contains("Columns shown: `deepseek`."),
        "{}",
        said.out
    );
    assert!(
        said.err.contains("skip openai: no built-in fixture"),
        "{}",
        said.err
    );
}

/// All five providers of the original have an answer, not two.
#[test]
fn every_provider_of_the_original_has_a_fixture() {
    let probe = ProbeSandbox::new();
    let said = probe.run_to(1, &["compare-table", "--from-fixtures"]);
    let columns = "Columns shown: `deepseek`, `glm`, `kimi`, `minimax`, `qwen`.\n\n";
    assert!(said.out.contains(columns), "{}", said.out);
    assert_eq!(said.err, "");
    let equal = "PASS — tool-call contracts are equivalent across 2 tool(s).";
    for (provider, verdict) in [
        ("deepseek", equal),
        ("glm", equal),
        ("kimi", equal),
        // A fault on both sides is not a difference, and is reported.
        (
            "minimax",
            "PASS — nothing breaks; there are warnings about replies.",
        ),
        (
            "qwen",
            "PASS — nothing breaks; 1 of 2 tool(s) have warnings.",
        ),
    ] {
        let args = [
            "run",
            "--from-fixtures",
            "--old",
            provider,
            "--new",
            provider,
        ];
        let said = probe.run_to(0, &args);
        assert!(said.out.contains(verdict), "{}", said.out);
    }
}
