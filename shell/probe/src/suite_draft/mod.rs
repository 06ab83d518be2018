//! Drafts a suite for tools: cases with prompts and expected calls, as YAML for people to edit.

mod draft_cases;
mod example_value;
mod inferred_schema;
mod yaml;

use std::path::Path;

use serde_json::{Value, json};
use toolwarden_model::Tool;
use toolwarden_model::json::Object;

use crate::probe_file::ProbeFileError;
use crate::suite::ProbeSuite;
use draft_cases::{DraftCase, DraftTurn, draft_cases};
use yaml::YamlWriter;

pub use inferred_schema::infer_tools;

/// A call that an agent made, without secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct CallExample {
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Object,
}

/// A suite as text, and the tools that could not be included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteDraft {
    /// The YAML document.
    pub text: String,
    /// The number of tools.
    pub tools: usize,
    /// The number of cases.
    pub cases: usize,
    /// The number of requests that one repetition in one mode sends, turns included.
    pub requests: usize,
    /// The tools without cases, and why.
    pub skipped: Vec<(String, String)>,
}

/// Drafts a suite. Recorded calls provide the arguments where their tool accepts them.
///
/// `origin` names the source of the tools, for the first comment. The result is a suite that
/// [`ProbeSuite::parse`] reads.
///
/// # Errors
/// No tool can be offered to a model; the error names the mistakes in the definitions.
pub fn draft_suite(
    name: &str,
    origin: &str,
    tools: &[Tool],
    calls: &[CallExample],
) -> Result<SuiteDraft, ProbeFileError> {
    let (mut usable, mut skipped) = (Vec::new(), Vec::new());
    for tool in tools {
        let alone = suite_text(name, origin, &[tool], &[]);
        match ProbeSuite::parse(&alone, Path::new("suite.yaml")) {
            Ok(_) if usable.iter().any(|it: &&Tool| it.name == tool.name) => {
                let reason = "another tool has the same name".to_owned();
                skipped.push((tool.name.clone(), reason));
            }
            Ok(_) => usable.push(tool),
            Err(error) => skipped.push((tool.name.clone(), first_mistake(&error))),
        }
    }
    let cases = draft_cases(&usable, calls);
    let text = suite_text(name, origin, &usable, &cases);
    ProbeSuite::parse(&text, Path::new("suite.yaml"))?;
    Ok(SuiteDraft {
        tools: usable.len(),
        cases: cases.len(),
        requests: cases.iter().map(|it| 1 + it.turns.len()).sum(),
        text,
        skipped,
    })
}

fn first_mistake(error: &ProbeFileError) -> String {
    match error {
        ProbeFileError::Invalid { mistakes, .. } => match mistakes.first() {
            Some(mistake) => mistake.to_string(),
            None => error.to_string(),
        },
        ProbeFileError::File(error) => error.to_string(),
    }
}

fn suite_text(name: &str, origin: &str, tools: &[&Tool], cases: &[DraftCase]) -> String {
    let mut out = YamlWriter::default();
    out.comment(
        0,
        &format!("A suite for `toolwarden probe`, drafted from {origin}."),
    );
    out.comment(
        0,
        "Edit it: reword the prompts as your users ask, correct the arguments, remove cases.",
    );
    out.comment(
        0,
        "Run it:  toolwarden probe run --old PROVIDER --new PROVIDER --suite THIS_FILE",
    );
    out.member(0, "name", &json!(name));
    out.comment(
        0,
        "Models do not always answer alike. 20 repetitions find a fault that occurs in 1 of 7 replies.",
    );
    out.member(0, "sampling", &json!({"repeat": 5, "modes": ["nonstream"]}));
    out.key(0, "cases");
    for case in cases {
        write_case(&mut out, case);
    }
    if cases.is_empty() {
        // A suite needs a case before it can be read.
        let hello = json!({"role": "user", "content": "Hello"});
        out.item(1, &json!({"name": "empty", "messages": [hello]}));
    }
    out.comment(0, "The tools as a model gets them.");
    out.key(0, "tools");
    for tool in tools {
        out.item(1, &definition(tool));
    }
    out.finish()
}

fn write_case(out: &mut YamlWriter, case: &DraftCase) {
    for line in &case.comments {
        out.comment(1, line);
    }
    out.item_member(1, "name", &json!(case.name));
    out.key(2, "messages");
    out.item(3, &json!({"role": "user", "content": case.prompt}));
    write_expectation(out, 2, case.expects_call, &case.calls);
    if !case.turns.is_empty() {
        out.key(2, "turns");
    }
    for turn in &case.turns {
        let DraftTurn {
            comment,
            results,
            expects_call,
            calls,
        } = turn;
        out.comment(3, comment);
        out.item_member(3, "results", &Value::Object(results.clone()));
        write_expectation(out, 4, *expects_call, calls);
    }
}

fn write_expectation(
    out: &mut YamlWriter,
    indent: usize,
    expects_call: bool,
    calls: &[(String, Option<Value>)],
) {
    let word = if expects_call { "call" } else { "no_call" };
    out.member(indent, "expect", &json!(word));
    if calls.is_empty() {
        return;
    }
    out.key(indent, "calls");
    for (tool, arguments) in calls {
        let mut call = Object::new();
        call.insert("tool".to_owned(), json!(tool));
        if let Some(arguments) = arguments {
            call.insert("arguments".to_owned(), arguments.clone());
        }
        out.item(indent + 1, &Value::Object(call));
    }
}

fn definition(tool: &Tool) -> Value {
    let mut function = Object::new();
    function.insert("name".to_owned(), json!(tool.name));
    function.insert("description".to_owned(), json!(tool.description));
    function.insert("parameters".to_owned(), Value::Object(tool.inputs.clone()));
    if let Some(strict) = tool.strict {
        function.insert("strict".to_owned(), json!(strict));
    }
    json!({"type": "function", "function": function})
}
