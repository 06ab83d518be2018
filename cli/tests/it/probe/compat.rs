//! Called as `tooldrift`, or asked to be it: its words, notes, severities and documents.

use serde_json::{Value, json};
use toolwarden_testkit::read_vectors;

use super::{ProbeSandbox, parsed};

/// What the original says of a field that differs.
fn note(field: &str) -> String {
    let note = match field {
        "arg_keys" => "the set of top-level argument keys changed (key renamed/dropped/added).",
        "arguments_encoding" => {
            "arguments switched between a JSON string and an inline object — a caller that \
             json.loads() the arguments will break on the swap."
        }
        "tool_call_id_format" => {
            "the tool_call id shape changed; callers keying on the id format may break."
        }
        "finish_reason" => "the choice finish_reason changed; tool-dispatch gating may differ.",
        other => {
            let key = other.strip_prefix("arg_nesting:").unwrap();
            return format!("the JSON type of argument '{key}' changed (nesting/shape drift).");
        }
    };
    note.to_owned()
}

/// The document the original prints for the flagship.
fn document(vectors: &Value) -> Value {
    let tools = vectors["diff_fields"].as_object().unwrap().iter();
    let tools: Vec<Value> = tools
        .map(|(tool, fields)| {
            let fields = fields.as_array().unwrap().iter().map(|row| {
                json!({
                    "field": row[0], "old": row[1], "new": row[2], "severity": row[3],
                    "note": note(row[0].as_str().unwrap()),
                })
            });
            json!({"tool": tool, "only_in": null, "fields": fields.collect::<Vec<_>>()})
        })
        .collect();
    json!({
        "old_label": "deepseek/deepseek-chat",
        "new_label": "qwen/qwen-plus",
        "suite": "weather",
        "tools": tools,
    })
}

#[test]
fn the_document_is_the_original_one_to_the_byte() {
    let Some(vectors) = read_vectors("probe-flagship.json") else {
        return;
    };
    let probe = ProbeSandbox::new();
    let wanted = format!("{:#}\n", document(&vectors));
    let run = [
        "run",
        "--old",
        "deepseek",
        "--new",
        "qwen",
        "--from-fixtures",
    ];
    let said = probe.tooldrift(&[&run[..], &["--format", "json"]].concat());
    assert_eq!((said.code, said.out.as_str()), (1, wanted.as_str()));
    let asked = [&run[..], &["--compat", "tooldrift", "-f", "json"]].concat();
    assert_eq!(probe.run_to(1, &asked).out, wanted);

    let snapshot = |provider: &str| {
        let file = format!("{provider}.json");
        let args = [
            "snapshot",
            "-p",
            provider,
            "--from-fixtures",
            "-o",
            &file,
            "-q",
        ];
        let said = probe.tooldrift(&args);
        assert_eq!((said.code, said.out.as_str()), (0, ""), "{said:?}");
        file
    };
    let (old, new) = (snapshot("deepseek"), snapshot("qwen"));
    let said = probe.tooldrift(&["diff", &old, &new, "--format", "json"]);
    let code = vectors["diff_exit"].as_i64().unwrap();
    assert_eq!((i64::from(said.code), said.out), (code, wanted.clone()));
    // Files of the original are compared by its rules, by whatever name we are called.
    assert_eq!(
        probe
            .run_to(
                1,
                &["diff", &old, &new, "--compat", "tooldrift", "-f", "json"]
            )
            .out,
        wanted
    );
    let same = probe.tooldrift(&["diff", &old, &old, "--format", "json"]);
    let code = vectors["diff_self_exit"].as_i64().unwrap();
    assert_eq!(i64::from(same.code), code);
    let fields = parsed(&same.out)["tools"][0]["fields"].clone();
    assert_eq!(fields, json!([]));
}

#[test]
fn the_text_has_the_notes_of_the_original() {
    let Some(vectors) = read_vectors("probe-flagship.json") else {
        return;
    };
    let run = [
        "run",
        "--old",
        "deepseek",
        "--new",
        "qwen",
        "--from-fixtures",
    ];
    for format in ["text", "rich"] {
        let said = ProbeSandbox::new().tooldrift(&[&run[..], &["--format", format]].concat());
        assert_eq!(said.code, 1);
        let head = "ToolDrift deepseek/deepseek-chat  →  qwen/qwen-plus   suite=weather\n";
        assert!(said.out.starts_with(head), "{}", said.out);
        let lines: Vec<&str> = said
            .out
            .lines()
            .filter(|it| it.contains('→'))
            .skip(1)
            .collect();
        let mut wanted = Vec::new();
        for (_, fields) in vectors["diff_fields"].as_object().unwrap() {
            wanted.extend(fields.as_array().unwrap());
        }
        assert_eq!(lines.len(), wanted.len());
        for (line, row) in lines.into_iter().zip(wanted) {
            let field = row[0].as_str().unwrap();
            assert!(line.trim_start().starts_with(field), "{line}");
            assert!(line.ends_with(&note(field)), "{line}");
            assert!(line.contains(row[3].as_str().unwrap()), "{line}");
        }
    }
}

/// It fails for a difference that only warns, and ours does not.
#[test]
fn any_difference_fails() {
    let Some(vectors) = read_vectors("probe-flagship.json") else {
        return;
    };
    let probe = ProbeSandbox::new();
    let old = &vectors["deepseek_snapshot"];
    let mut new = old.clone();
    new["tools"]["get_weather"]["parallel_arity"] = json!(2);
    probe.write("old.json", &old.to_string());
    probe.write("new.json", &new.to_string());
    let told = "the number of parallel calls to this tool changed (loop semantics differ).";
    let said = probe.tooldrift(&["diff", "old.json", "new.json"]);
    assert!(said.code == 1 && said.out.contains(told), "{said:?}");
    assert!(
        said.out.contains("FAIL — drift in 1 of 2 tool(s). Exit 1."),
        "{said:?}"
    );
    let said = probe.run_to(0, &["diff", "old.json", "new.json"]);
    assert!(
        said.out
            .contains("PASS — nothing breaks; 1 of 2 tool(s) have warnings."),
        "{said:?}"
    );
    probe.run_to(1, &["diff", "--fail-on", "any", "old.json", "new.json"]);
    assert_eq!(
        probe
            .tooldrift(&["diff", "--fail-on", "breaking", "old.json", "new.json"])
            .code,
        0
    );

    let tools = new["tools"].as_object_mut().unwrap();
    tools.insert("rm_rf".to_owned(), old["tools"]["get_weather"].clone());
    probe.write("new.json", &new.to_string());
    let said = probe.tooldrift(&["diff", "old.json", "new.json", "-f", "json"]);
    let document = parsed(&said.out);
    assert_eq!(
        document["tools"][2],
        json!({"tool": "rm_rf", "only_in": "new", "fields": []})
    );
    // A tool that was not offered breaks callers.
    probe.run_to(1, &["diff", "old.json", "new.json"]);
}

/// What the original ends with, measured with tooldrift 0.5.0, except for a provider that does not
/// answer: 2 there, 3 here.
#[test]
fn exit_codes_and_streams_are_those_of_the_original() {
    let probe = ProbeSandbox::new();
    let dead = [
        "--base-url",
        "http://127.0.0.1:1/v1",
        "--model",
        "m",
        "--retries",
        "0",
    ];
    let unreachable = [&["snapshot", "--base", "nowhere"], &dead[..]].concat();
    for (args, code) in [
        (&["--version"][..], 0),
        (&["-V"], 0),
        (&["--help"], 0),
        (&[], 2),
        (&["bogus"], 2),
        (&["snapshot"], 2),
        (&["snapshot", "--base", "x"], 2),
        (&["snapshot", "--base", "deepseek", "--from-fixtures"], 0),
        (
            &[
                "snapshot",
                "--base",
                "deepseek",
                "--from-fixtures",
                "--model",
                "other",
            ],
            2,
        ),
        (&["run"], 2),
        (&["run", "--old", "deepseek"], 2),
        (&["run", "--old", "deepseek", "--new", "qwen"], 2),
        (
            &[
                "run",
                "--old",
                "deepseek",
                "--new",
                "qwen",
                "--from-fixtures",
            ],
            1,
        ),
        (
            &[
                "run",
                "--old",
                "deepseek",
                "--new",
                "deepseek",
                "--from-fixtures",
            ],
            0,
        ),
        (&["run", "--contract", "nope.yaml"], 2),
        (&["diff", "nope.json", "nope.json"], 2),
        (&unreachable, 3),
    ] {
        let said = probe.tooldrift(args);
        assert_eq!(said.code, code, "{args:?}: {said:#?}");
        assert!(
            !said.err.contains("toolwarden probe"),
            "{args:?}: {}",
            said.err
        );
        assert!(
            !said.out.contains("toolwarden probe"),
            "{args:?}: {}",
            said.out
        );
        if said.err.contains("Usage: ") {
            assert!(
                said.err.contains("Usage: tooldrift"),
                "{args:?}: {}",
                said.err
            );
        }
    }
    let version = probe.tooldrift(&["--version"]).out;
    assert_eq!(
        version,
        format!("tooldrift {}\n", env!("CARGO_PKG_VERSION"))
    );
}
