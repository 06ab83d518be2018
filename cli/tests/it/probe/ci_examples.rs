//! The files for CI systems in `examples/ci`: they parse, and their commands are those of the program.

use std::path::Path;

use serde_json::Value;

use super::ProbeSandbox;

const FILES: [(&str, &str); 2] = [
    (
        "github-model-contracts.yml",
        include_str!("../../../../examples/ci/github-model-contracts.yml"),
    ),
    (
        "gitlab-model-contracts.yml",
        include_str!("../../../../examples/ci/gitlab-model-contracts.yml"),
    ),
];

/// Every text of a document that is a command of this program.
fn commands(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.starts_with("toolwarden ") => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|it| commands(it, found)),
        Value::Object(members) => members.values().for_each(|it| commands(it, found)),
        _ => {}
    }
}

#[test]
fn the_commands_of_the_ci_files_run_as_they_stand() {
    let probe = ProbeSandbox::new();
    let contract = include_str!("../../../../examples/contract.yaml");
    let suite = include_str!("../../../../examples/suite.weather.yaml");
    probe.write("contract.yaml", contract);
    probe.write("suite.weather.yaml", suite);
    for (name, text) in FILES {
        let document = toolwarden_files::parse_document(text, Path::new(name)).unwrap();
        let mut found = Vec::new();
        commands(&document.value, &mut found);
        assert_eq!(found.len(), 2, "{name}: {found:?}");
        for command in found {
            let command = command.split(" > ").next().unwrap().to_owned();
            let words = shlex::split(&command).unwrap();
            let mut words: Vec<&str> = words.iter().map(String::as_str).skip(2).collect();
            // Without the keys of providers; a capture needs their answers.
            words.extend(["--from-fixtures", "--base", "deepseek", "--base", "qwen"]);
            words.retain(|it| !["--capture", "raw"].contains(it));
            let said = probe.run(&words);
            let expected = if words[0] == "report" { [0, 0] } else { [0, 1] };
            assert!(expected.contains(&said.code), "{command}: {said:#?}");
        }
    }
    assert!(probe.read("report.html").starts_with("<!doctype html>"));
}
