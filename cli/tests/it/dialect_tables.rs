//! Tables that `probe dialect` saves, read by `canon lint`.

use std::path::Path;

use snapbox::cmd::{Command, cargo_bin};
use toolwarden_canon::{DialectLevel, DialectTable, lint_with_facts};
use toolwarden_model::reply::WireApi;
use toolwarden_model::{Format, Tool};
use toolwarden_probe::{
    DialectReport, KeywordFamily, KeywordFamilyOutcome, KeywordFamilyReport, families,
};

/// A table in which one family has an outcome of its own.
fn document(odd: &str, outcome: KeywordFamilyOutcome) -> String {
    let report = |family: &KeywordFamily| KeywordFamilyReport {
        id: family.id.to_owned(),
        what: family.what.to_owned(),
        outcome: if family.id == odd {
            outcome
        } else {
            KeywordFamilyOutcome::Accepted
        },
        called: true,
        status: Some(200),
        message: None,
        schema: family.schema.clone(),
    };
    let families: Vec<KeywordFamilyReport> = families().iter().map(report).collect();
    let report = DialectReport {
        provider: "kimi".to_owned(),
        model_id: "k2".to_owned(),
        wire: WireApi::OpenaiChat,
        at: Some("2026-11-14T12:00:00.000Z".to_owned()),
        tool_choice: "required".to_owned(),
        plain: families[0].clone(),
        families,
    };
    report.to_json().unwrap()
}

/// The tool that a family sends.
fn tool(family: &KeywordFamily) -> Tool {
    let mut tool = Tool::new(Format::OpenaiChat);
    family.name.clone_into(&mut tool.name);
    tool.inputs = family.schema.as_object().unwrap().clone();
    tool
}

fn levels(table: &DialectTable, family: &KeywordFamily) -> Vec<DialectLevel> {
    let findings = lint_with_facts(&tool(family), &table.facts);
    findings.into_iter().map(|it| it.level).collect()
}

#[test]
fn canon_knows_the_families_that_probe_asks_about() {
    let asked: Vec<&str> = families().iter().map(|it| it.id).collect();
    let known: Vec<&str> = DialectTable::families().collect();
    assert_eq!(known, asked);
}

#[test]
fn what_a_provider_does_with_a_schema_is_found_in_that_schema() {
    let takes_all = DialectTable::read(&document("", KeywordFamilyOutcome::Accepted)).unwrap();
    for family in families() {
        assert_eq!(levels(&takes_all, &family), [], "{}", family.id);
        for (outcome, level) in [
            (KeywordFamilyOutcome::Rejected, DialectLevel::Rejected),
            (KeywordFamilyOutcome::Ignored, DialectLevel::Ignored),
        ] {
            let table = DialectTable::read(&document(family.id, outcome)).unwrap();
            let found = levels(&table, &family);
            assert!(
                !found.is_empty() && found.iter().all(|it| *it == level),
                "{} {outcome:?}: {found:?}",
                family.id
            );
        }
    }
}

fn lint(folder: &Path, words: &[&str]) -> Command {
    Command::new(cargo_bin!("toolwarden"))
        .current_dir(folder)
        .args(["canon", "lint", "--color", "never"])
        .args(words)
}

#[test]
fn lint_reads_a_table_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    put(
        "tool.json",
        r#"{"name":"pick","description":"Pick one","inputSchema":{"type":"object","properties":{"it":{"oneOf":[{"type":"string"},{"type":"integer"}]}}}}"#,
    );
    put(
        "kimi.json",
        &document("oneOf", KeywordFamilyOutcome::Rejected),
    );
    put("table", &document("oneOf", KeywordFamilyOutcome::Ignored));
    put(
        "gaps.json",
        &document("oneOf", KeywordFamilyOutcome::NotMeasured),
    );
    // A known word wins over a file of that name.
    put("bedrock", "no table");

    lint(folder.path(), &["--for", "./kimi.json", "tool.json"])
        .assert()
        .code(1)
        .stdout_eq(
            "tool.json:1:92: error[keyword] pick: `oneOf` is not accepted (kimi/k2)
  at /inputSchema/properties/it/oneOf  --fix rewrites it

json-schema: 0 of 1 tool invalid
kimi/k2: 1 of 1 tool rejected (checked 2026-11-14)
",
        );
    let fixed = ["--for", "kimi.json", "--fix", "--output", "fixed.json"];
    let fixed = [fixed.as_slice(), &["tool.json"]].concat();
    lint(folder.path(), &fixed).assert().code(0);
    lint(folder.path(), &["--for", "kimi.json", "fixed.json"])
        .assert()
        .code(0);
    lint(folder.path(), &["--for", "table", "tool.json"])
        .assert()
        .code(0)
        .stdout_eq(
            "tool.json:1:92: warning[keyword] pick: `oneOf` is accepted but not honoured (kimi/k2)
  at /inputSchema/properties/it/oneOf

json-schema: 0 of 1 tool invalid
kimi/k2: 0 of 1 tool rejected (checked 2026-11-14)
",
        );
    lint(folder.path(), &["--for", "table", "--strict", "tool.json"])
        .assert()
        .code(1);
    lint(folder.path(), &["--for", "gaps.json", "tool.json"])
        .assert()
        .code(0)
        .stderr_eq("Warning: kimi/k2: not measured, so not checked: oneOf\n");
    lint(folder.path(), &["--for", "bedrock", "tool.json"])
        .assert()
        .code(0);
    for (word, message) in [
        ("none.json", "cannot read the file: [..]"),
        (
            "tool.json",
            "not a dialect table: the document is `something else`, expected `toolwarden/probe/dialect/v1`",
        ),
    ] {
        lint(folder.path(), &["--for", word, "tool.json"])
            .assert()
            .code(2)
            .stderr_eq(format!(
                "error: invalid value '{word}' for '--for <DIALECT>': {message}\n\nFor more information, try '--help'.\n"
            ));
    }
}
