//! Text from outside must not act on the CI runner that shows a report.

use serde_json::{Value, json};

use super::sandbox::{Sandbox, command_output};

/// Names and texts by which a definition would give a runner orders.
const HOSTILE: [&str; 5] = [
    "::error file=app.js::owned",
    "##[error]owned",
    "##vso[task.setvariable variable=x]owned",
    "line\n::warning::owned",
    "a\u{2028}::notice::owned\u{2029}\u{fe0f}",
];

fn list(change: &str) -> String {
    let tools = HOSTILE.iter().map(|text| {
        json!({
            "name": text,
            "description": format!("{text} {change}"),
            "inputSchema": {
                "type": "object",
                "properties": {*text: {"type": change, "description": text}},
                "required": [text],
            },
        })
    });
    Value::Array(tools.collect()).to_string()
}

/// What a runner would act on, or a reader would not see, in a report that is not in its own format.
fn orders(report: &str) -> Vec<String> {
    let lines = report.split(['\n', '\r', '\u{2028}', '\u{2029}']);
    let acts = |line: &&str| {
        let marked = line.contains("##[") || line.contains("##vso[");
        marked || line.trim_start().starts_with("::") || line.contains('\u{fe0f}')
    };
    lines.filter(acts).map(str::to_owned).collect()
}

#[test]
fn no_report_gives_a_runner_orders() {
    let sandbox = Sandbox::new();
    sandbox.write("::error::a.json", &list("string"));
    sandbox.write("b.json", &list("integer"));
    sandbox.write("one.json", &list("string"));
    sandbox.watch_to(0, &["baseline", "--server", "s", "one.json"]);
    sandbox.watch_to(0, &["lock", "--server", "s", "one.json"]);
    for format in ["text", "json", "junit", "sarif", "markdown", "github"] {
        let commands: [&[&str]; 6] = [
            &["watch", "diff", "::error::a.json", "b.json"],
            &["watch", "scan", "--weight", "low", "::error::a.json"],
            &["watch", "check", "--server", "s", "b.json"],
            &[
                "watch",
                "check",
                "--server",
                "s",
                "--lock",
                "toolwarden.lock",
                "b.json",
            ],
            &["canon", "lint", "::error::a.json"],
            &["guard", "lint", "--policy", "policy.yaml"],
        ];
        let policy = json!({"tools": {"pay": {"group": HOSTILE}}, "principals": {"::error::p": {"groups": HOSTILE}}});
        sandbox.write("policy.yaml", &policy.to_string());
        for command in commands {
            let mut process = sandbox.command();
            let process = process.args(command).args(["--format", format]);
            let said = command_output(process.output().unwrap());
            let mut found = orders(&said.err);
            found.extend(orders(&said.out).into_iter().filter(|line| {
                // In the runner's own format every line is a command of ours.
                format != "github" || !line.starts_with("::") || line.contains("##")
            }));
            assert_eq!(found, Vec::<String>::new(), "{command:?} as {format}");
            if format == "github" {
                let ours = |line: &str| {
                    ["::error file=", "::warning file=", "::notice file="]
                        .iter()
                        .any(|it| line.starts_with(it))
                };
                let others: Vec<_> = said.out.lines().filter(|it| !ours(it)).collect();
                assert!(
                    others.iter().all(|it| !it.trim_start().starts_with("::")),
                    "{others:?}"
                );
                let file = said.out.lines().filter(|it| it.contains("file=::"));
                assert_eq!(file.count(), 0, "{}", said.out);
            }
        }
    }
}
