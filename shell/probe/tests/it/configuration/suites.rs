use std::path::Path;

use serde_json::{Value, json};
use toolwarden_model::reply::StreamMode;
use toolwarden_probe::{ProbeCase, ProbeFileError, ProbeSampling, ProbeSuite};
use toolwarden_trials::{CallExpectation, ExpectedCall, SuiteCase};

use super::error_text;

const EXAMPLE: &str = include_str!("../../../../../examples/suite.weather.yaml");

const TOOLS: &str = r#"
tools:
  - name: read
    description: Read a file.
    input_schema: {type: object, properties: {path: {type: string}, lines: {type: integer}}, required: [path]}
  - name: send
    inputSchema: {type: object}
"#;

fn suite(text: &str) -> Result<ProbeSuite, String> {
    let text = format!("{TOOLS}{text}");
    let read = ProbeSuite::parse(&text, Path::new("s.yaml"));
    read.map_err(|error| error.to_string())
}

fn case(name: &str) -> ProbeCase {
    ProbeCase {
        name: name.to_owned(),
        messages: vec![json!({"role": "user", "content": "hi"})],
        tool_choice: Some(json!("auto")),
        expect: CallExpectation::Either,
        calls: Vec::new(),
        forbid: Vec::new(),
        extra: serde_json::Map::new(),
        turns: Vec::new(),
    }
}

#[test]
fn the_bundled_suite_is_the_example_and_reads_as_tooldrift_reads_it() {
    let suite = ProbeSuite::bundled().unwrap();
    assert_eq!(
        ProbeSuite::parse(EXAMPLE, Path::new("x.yaml")).unwrap(),
        suite
    );
    assert_eq!(suite.name, "weather");
    assert_eq!(suite.sampling, ProbeSampling::default());
    let arguments: Vec<_> = suite
        .tools
        .iter()
        .map(|it| (it.name.as_str(), it.inputs["required"].clone()))
        .collect();
    assert_eq!(
        arguments,
        [
            ("get_weather", json!(["location"])),
            ("get_forecast", json!(["location", "days"]))
        ]
    );
    let roles: Vec<_> = suite.cases[0]
        .messages
        .iter()
        .map(|it| &it["role"])
        .collect();
    assert_eq!(roles, ["system", "user"]);
    let expected = ProbeCase {
        messages: suite.cases[0].messages.clone(),
        ..case("weather")
    };
    assert_eq!(suite.cases, [expected]);
}

#[test]
fn a_suite_without_a_name_is_called_after_its_file() {
    let text = format!("{TOOLS}messages: [{{role: user, content: hi}}]\ntool_choice: null\n");
    let suite = ProbeSuite::parse(&text, Path::new("a/suite.mine.yaml")).unwrap();
    let expected = ProbeCase {
        tool_choice: None,
        ..case("suite.mine")
    };
    assert_eq!(
        (suite.name.as_str(), suite.cases),
        ("suite.mine", vec![expected])
    );
}

#[test]
fn cases_sampling_and_extras() {
    let read = suite(
        "
name: n
description: d
tool_choice: required
request: {max_tokens: 100}
sampling: {repeat: 3, temperature: 0.5, modes: [stream, nonstream, stream]}
cases:
  - name: a
    messages: [{role: user, content: hi}]
    calls: [send, {tool: read, arguments: {path: x, lines: 1}}]
    extra: {seed: 1}
  - name: b
    messages: [{role: user, content: hi}]
    expect: no_call
    tool_choice: {type: function, function: {name: send}}
    forbid: send
",
    )
    .unwrap();
    assert_eq!(
        read.sampling,
        ProbeSampling {
            repeat: 3.try_into().unwrap(),
            temperature: Some(0.5),
            modes: vec![StreamMode::Stream, StreamMode::Nonstream],
        }
    );
    assert_eq!(Value::Object(read.extra), json!({"max_tokens": 100}));
    assert_eq!(read.description.as_deref(), Some("d"));
    let calls = vec![
        ExpectedCall {
            tool: "send".to_owned(),
            arguments: None,
        },
        ExpectedCall {
            tool: "read".to_owned(),
            arguments: Some(json!({"path": "x", "lines": 1})),
        },
    ];
    let a = ProbeCase {
        tool_choice: Some(json!("required")),
        expect: CallExpectation::Call,
        calls,
        extra: json!({"seed": 1}).as_object().unwrap().clone(),
        ..case("a")
    };
    let b = ProbeCase {
        tool_choice: Some(json!({"type": "function", "function": {"name": "send"}})),
        expect: CallExpectation::NoCall,
        forbid: vec!["send".to_owned()],
        ..case("b")
    };
    assert_eq!(read.cases, [a, b]);
    let top = "messages: [{role: user, content: hi}]\nrepeat: 2\nmodes: stream\n";
    let sampling = suite(top).unwrap().sampling;
    assert_eq!(
        (sampling.repeat.get(), sampling.modes),
        (2, vec![StreamMode::Stream])
    );
}

#[test]
fn mistakes_are_reported_with_positions() {
    let ok = "messages: [{role: user, content: hi}]\n";
    for (text, message) in [
        ("", "s.yaml:2:1: /: `messages` is missing"),
        (
            "mesages: []\n",
            "s.yaml:2:1: /: `messages` is missing\n\
             s.yaml:8:1: /mesages: unknown key `mesages`, did you mean `messages`?",
        ),
        (
            "messages: []\n",
            "s.yaml:8:1: /messages: expected at least one message, found an empty list",
        ),
        (
            "messages: hi\n",
            "s.yaml:8:1: /messages: expected a list, found a string",
        ),
        (
            "messages:\n  - hi\n  - content: x\n  - {role: usr}\n",
            "s.yaml:9:5: /messages/0: expected a mapping, found a string\n\
             s.yaml:10:5: /messages/1: `role` is missing\n\
             s.yaml:11:6: /messages/2/role: unknown word `usr`, did you mean `user`?; known are \
             system, developer, user, assistant, tool, function",
        ),
        (
            "cases: []\nmessages: [{role: user}]\nforbid: [send]\n",
            "s.yaml:8:1: /cases: expected at least one case, found an empty list\n\
             s.yaml:9:1: /messages: `messages` and `cases` exclude each other\n\
             s.yaml:10:1: /forbid: `forbid` and `cases` exclude each other",
        ),
        (
            "cases:\n  - messages: [{role: user}]\n  - {name: a, messages: [{role: user}]}\n  - {name: a, messages: [{role: user}]}\n",
            "s.yaml:9:5: /cases/0: `name` is missing\n\
             s.yaml:11:6: /cases/2/name: there are two cases `a`",
        ),
        (
            "calls: [raed]\nforbid: [sent, other_tool]\n",
            "s.yaml:9:9: /calls/0: there is no tool `raed`, did you mean `read`?\n\
             s.yaml:10:10: /forbid/0: there is no tool `sent`, did you mean `send`?\n\
             s.yaml:10:16: /forbid/1: there is no tool `other_tool`",
        ),
        (
            "calls:\n  - tool: read\n    arguments: {lines: many}\n  - {tool: send, arguments: 3}\n",
            "s.yaml:11:5: /calls/0/arguments: the expected call of `read` is invalid: \
             \"path\" is a required property\n\
             s.yaml:11:17: /calls/0/arguments/lines: the expected call of `read` is invalid: \
             \"many\" is not of type \"integer\"\n\
             s.yaml:12:18: /calls/1/arguments: expected a mapping, found a number",
        ),
        (
            "expect: no_call\ncalls: [send]\nforbid: [send]\n",
            "s.yaml:9:1: /expect: `expect: no_call` and `calls` exclude each other\n\
             s.yaml:11:10: /forbid/0: `send` is expected and forbidden",
        ),
        (
            "expect: calls\n",
            "s.yaml:9:1: /expect: unknown word `calls`, did you mean `call`?; known are call, \
             no_call, either",
        ),
        (
            "tool_choice: requried\n",
            "s.yaml:9:1: /tool_choice: unknown word `requried`, did you mean `required`?; known \
             are auto, none, required, any",
        ),
        (
            "tool_choice: {type: function, function: {name: reed}}\n",
            "s.yaml:9:42: /tool_choice/function/name: there is no tool `reed`, did you mean `read`?",
        ),
        (
            "sampling: {repeat: 0, temperature: 3, modes: [streem]}\nrepeat: 2\n",
            "s.yaml:9:12: /sampling/repeat: expected a whole number from 1 to 4294967295, found 0\n\
             s.yaml:9:23: /sampling/temperature: expected a number from 0 to 2, found 3\n\
             s.yaml:9:47: /sampling/modes/0: unknown word `streem`, did you mean `stream`?; known \
             are nonstream, stream\n\
             s.yaml:10:1: /repeat: `repeat` and `sampling` exclude each other",
        ),
        (
            "extra: {model: x, api_key: sk-123}\n",
            "s.yaml:9:9: /extra/model: `model` is set by the probe and cannot be an extra\n\
             s.yaml:9:19: /extra/api_key: a key does not belong in a file; put it in an \
             environment variable and name that in `api_key_env`",
        ),
        (
            "modes: []\n",
            "s.yaml:9:1: /modes: expected at least one of nonstream and stream, found an empty list",
        ),
        (
            "name: [",
            "s.yaml:10:1: while parsing a node, did not find expected node content",
        ),
    ] {
        let begins = ["messages", "mesages", "cases"];
        let whole = text.is_empty() || begins.iter().any(|it| text.starts_with(it));
        let text = if whole {
            text.to_owned()
        } else {
            format!("{ok}{text}")
        };
        assert_eq!(suite(&text), Err(message.to_owned()), "{text}");
    }
}

#[test]
fn tool_mistakes_are_reported_with_positions() {
    let messages = "messages: [{role: user, content: hi}]";
    for (tools, message) in [
        (
            "3",
            "s.yaml:2:1: /tools: expected a list of tools, or the name of a file of them, found a number",
        ),
        (
            "[]",
            "s.yaml:2:1: /tools: expected at least one tool, found none",
        ),
        (
            "[hi]",
            "s.yaml:2:9: /tools/0: Definition is a string, expected an object.",
        ),
        (
            "\n  - {name: a, inputSchema: {type: object}}\n  - {name: a, inputSchema: {type: object}}",
            "s.yaml:4:6: /tools/1/name: there are two tools `a`",
        ),
        (
            "\n  - {name: a, inputSchema: {type: objekt}}",
            "s.yaml:3:29: /tools/0/inputSchema/type: the schema of `a` is invalid: \"objekt\" is not \
             valid under any of the schemas listed in the 'anyOf' keyword",
        ),
        (
            "gone.json",
            "s.yaml:2:1: /tools: cannot read gone.json: No such file or directory (os error 2)",
        ),
        (
            "[{type: web_search_20250305, name: web_search}]",
            "s.yaml:2:9: /tools/0: a tool that the provider runs cannot be offered to others",
        ),
    ] {
        let text = format!("{messages}\ntools: {tools}\n");
        let error = ProbeSuite::parse(&text, Path::new("s.yaml")).unwrap_err();
        assert_eq!(error.to_string(), message, "{tools}");
    }
}

#[test]
fn tools_may_stand_in_a_file_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "suite.yaml",
        "tools: tools.json\nmessages: [{role: user, content: hi}]\n",
    );
    let path = folder.path().join("suite.yaml");
    write(
        "tools.json",
        r#"{"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}"#,
    );
    let suite = ProbeSuite::load(&path).unwrap();
    assert_eq!(
        (suite.name.as_str(), suite.tools[0].name.as_str()),
        ("suite", "a")
    );
    for (text, message) in [
        (
            r#"[{"description": "x", "inputSchema": {}}]"#,
            "suite.yaml:1:1: /tools: tools.json/0: the tool has no name",
        ),
        (
            "{a: [",
            "suite.yaml:1:1: /tools: tools.json:1:2: not JSON: a key must be text in double quotes",
        ),
    ] {
        write("tools.json", text);
        let error = ProbeSuite::load(&path).unwrap_err();
        assert_eq!(error_text(&error, folder.path()), message);
    }
    write(
        "suite.yaml",
        "tools: tools.yaml\nmessages: [{role: user, content: hi}]\n",
    );
    write("tools.yaml", "{a: [");
    let error = ProbeSuite::load(&path).unwrap_err();
    assert_eq!(
        error_text(&error, folder.path()),
        "suite.yaml:1:1: /tools: tools.yaml:2:1: while parsing a node, did not find expected node content"
    );
    let gone = ProbeSuite::load(&folder.path().join("gone.yaml")).unwrap_err();
    assert!(matches!(gone, ProbeFileError::File(error) if error.is_not_found()));
}

#[test]
fn the_fingerprint_is_of_what_is_asked() {
    let base = "messages: [{role: user, content: hi}]\n";
    let hash = |text: &str| suite(text).unwrap().facts().hash;
    let same = [
        "name: other\n",
        "description: d\n",
        "repeat: 5\n",
        "modes: [stream]\n",
        "expect: call\n",
        "forbid: [send]\n",
        "tool_choice: auto\n",
    ];
    for text in same {
        assert_eq!(hash(&format!("{base}{text}")), hash(base), "{text}");
    }
    let named = "cases: [{name: z, messages: [{content: hi, role: user}]}]\n";
    assert_eq!(hash(named), hash(base));
    let other = [
        "temperature: 0\n",
        "extra: {seed: 1}\n",
        "tool_choice: none\n",
        "tool_choice: null\n",
    ];
    for text in other {
        assert_ne!(hash(&format!("{base}{text}")), hash(base), "{text}");
    }
    assert_ne!(hash(&base.replace("hi", "ho")), hash(base));
    assert_ne!(
        hash(&named.replace("}]}]", "}], extra: {seed: 1}}]")),
        hash(base)
    );
    let facts = suite(base).unwrap().facts();
    let tools: Vec<_> = facts.tools.keys().map(String::as_str).collect();
    assert_eq!(tools, ["read", "send"]);
    assert_eq!(facts.tools["send"].schema, json!({"type": "object"}));
    assert_ne!(facts.tools["send"].hash, facts.tools["read"].hash);
    let expected = SuiteCase {
        name: "s".to_owned(),
        ..SuiteCase::default()
    };
    assert_eq!(facts.cases, [expected]);
}

#[test]
fn a_tool_is_the_same_in_every_format() {
    let messages = "messages: [{role: user, content: hi}]\n";
    let schema = "{type: object, properties: {a: {type: string}}}";
    let forms = [
        format!("[{{name: t, description: d, inputSchema: {schema}}}]"),
        format!("[{{name: t, description: d, input_schema: {schema}}}]"),
        format!(
            "[{{type: function, function: {{name: t, description: d, parameters: {schema}}}}}]"
        ),
    ];
    let facts = forms.map(|tools| {
        let text = format!("{messages}tools: {tools}\n");
        ProbeSuite::parse(&text, Path::new("s.yaml"))
            .unwrap()
            .facts()
    });
    assert_eq!(facts[0], facts[1]);
    assert_eq!(facts[0], facts[2]);
}

#[test]
fn the_suite_of_the_documentation_is_one() {
    let document = include_str!("../../../../../docs/probe.md");
    let block = document.split("```yaml\n").nth(1).unwrap();
    let block = block.split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object", "properties": {"customer": {"type": "integer"}}}});
    let tools = json!({"tools": [tool("get_balance"), tool("send_payment")]});
    std::fs::write(folder.path().join("tools.json"), tools.to_string()).unwrap();
    let path = folder.path().join("suite.yaml");
    std::fs::write(&path, block).unwrap();
    let suite = ProbeSuite::load(&path).unwrap();
    assert_eq!((suite.name.as_str(), suite.cases.len()), ("billing", 2));
    assert_eq!(suite.sampling.repeat.get(), 20);
}

#[test]
fn a_tool_choice_says_what_is_expected() {
    let named = json!({"type": "function", "function": {"name": "read"}});
    let expecting = |choice: &Value, more: &str| {
        let case = format!(
            "cases: [{{name: c, messages: [{{role: user, content: hi}}], tool_choice: {choice}{more}}}]"
        );
        let suite = suite(&case).unwrap();
        let tools = suite.cases[0].calls.iter().map(|it| it.tool.clone());
        (suite.cases[0].expect, tools.collect::<Vec<_>>())
    };
    let none = Vec::<String>::new;
    assert_eq!(
        expecting(&json!("auto"), ""),
        (CallExpectation::Either, none())
    );
    assert_eq!(
        expecting(&json!("none"), ""),
        (CallExpectation::NoCall, none())
    );
    assert_eq!(
        expecting(&json!("required"), ""),
        (CallExpectation::Call, none())
    );
    assert_eq!(
        expecting(&named, ""),
        (CallExpectation::Call, vec!["read".to_owned()])
    );
    assert_eq!(
        expecting(&named, ", expect: either"),
        (CallExpectation::Either, none()),
        "the case has the last word"
    );
}
