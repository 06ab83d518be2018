//! What the documents of the gateway tell people to write and to type.

use std::path::Path;

use crate::sandbox::{Sandbox, command_output};

fn document(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    std::fs::read_to_string(docs.join(name)).unwrap()
}

/// The blocks of a language in a document.
fn blocks<'d>(document: &'d str, language: &str) -> Vec<&'d str> {
    let fence = format!("```{language}\n");
    let starts = document.split(&*fence).skip(1);
    starts
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

#[test]
fn the_settings_of_the_document_can_be_used() {
    let sandbox = Sandbox::new();
    let document = document("gateway.md");
    let written = blocks(&document, "yaml");
    let [settings, issuers, roles, principals, environment] = written[..] else {
        panic!("settings, parts of settings and the principals of a policy: {written:?}");
    };
    for part in [issuers, roles, environment] {
        let policy = "policy: {tools: {}, roles: {clerk: {}, reader: {}, exporter: {}}}\n";
        // A gateway needs callers, which not every part of the settings names.
        let callers = match part.contains("identity:") {
            true => "",
            false => "identity: {anonymous: ada}\n",
        };
        sandbox.write("part.yaml", &format!("{policy}{callers}{part}"));
        let mut command = sandbox.command();
        command
            .args(["config", "check", "part.yaml"])
            .env("TICKETS_TOKEN", "t-1");
        let told = command_output(command.output().unwrap());
        assert_eq!(told.code, 0, "{part}: {told:?}");
    }
    sandbox.write("toolwarden.yaml", settings);
    let policy = format!("tools: {{files__read_file: ~}}\n{principals}");
    sandbox.write("policy.yaml", &policy);
    let mut command = sandbox.command();
    command
        .args(["config", "check"])
        .env("TICKETS_TOKEN", "t-1")
        .env("SLACK_URL", "https://hooks.example.com/services/1");
    let told = command_output(command.output().unwrap());
    assert_eq!(
        (told.code, told.out.as_str()),
        (0, "toolwarden.yaml can be used: 2 servers\n"),
        "{told:?}"
    );
}

#[test]
fn the_commands_of_the_documents_exist_with_their_options() {
    let sandbox = Sandbox::new();
    let mut tried = 0;
    for name in ["gateway.md", "quickstart-desktop.md", "../README.md"] {
        let document = document(name);
        for block in blocks(&document, "sh") {
            // README.md also says how to build and test.
            let other_programs = |it: &str| it.starts_with("cargo ") || it.starts_with("./test");
            let lines = block.lines().filter(|it| !it.trim().is_empty());
            for line in lines.filter(|it| !other_programs(it)) {
                let line = line.split(" #").next().unwrap();
                let mut words = shlex::split(line).unwrap();
                assert_eq!(words.remove(0), "toolwarden", "{line}");
                // Before what follows `--`, which is for another program.
                let end = words.iter().position(|word| word == "--");
                words.insert(end.unwrap_or(words.len()), "--help".to_owned());
                let told = command_output(sandbox.command().args(&words).output().unwrap());
                assert_eq!(told.code, 0, "{name}: {line}\n{}", told.err);
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 15);
}
