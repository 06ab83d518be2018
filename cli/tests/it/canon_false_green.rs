//! Definitions that canon used to pass without a word: calls that cannot be made, tools that cannot be
//! called, and parts that were not read.

use super::sandbox::{CommandOutput, Sandbox, command_output};

const ECHO: &str =
    r#"{"name": "echo", "description": "Say it", "inputSchema": {"type": "object"}}"#;

fn canon_to(sandbox: &Sandbox, code: i32, args: &[&str]) -> CommandOutput {
    let output = command_output(sandbox.command().arg("canon").args(args).output().unwrap());
    assert_eq!(output.code, code, "{args:?}: {output:#?}");
    output
}

#[test]
fn lint_finds_schemas_that_no_call_satisfies() {
    let sandbox = Sandbox::new();
    let cases = [
        (
            r#"{"type": "object", "required": ["a"], "properties": {"a": false}}"#,
            "/inputSchema/properties/a",
        ),
        (
            r#"{"type": "object", "properties": {"a": {"type": "integer", "minimum": 5, "maximum": 1}}}"#,
            "/inputSchema/properties/a",
        ),
        (r#"{"type": "string"}"#, "/inputSchema"),
    ];
    for (schema, place) in cases {
        let text = format!(r#"{{"name": "a", "description": "d", "inputSchema": {schema}}}"#);
        sandbox.write("x.json", &text);
        let told = canon_to(&sandbox, 1, &["lint", "x.json"]).out;
        let expected = ["error[unsatisfiable] a", &format!("  at {place}\n")];
        for part in expected {
            assert!(told.contains(part), "{schema}: {told}");
        }
    }
    // A result may be any value, and a branch that nothing takes harms no other.
    let text = r#"{"name": "a", "description": "d", "inputSchema": {"type": "object", "properties": {
        "a": {"anyOf": [{"type": "string", "enum": [1]}, {"type": "null"}]}}}, "outputSchema": {"type": "string"}}"#;
    sandbox.write("x.json", text);
    let told = canon_to(&sandbox, 0, &["lint", "x.json"]).out;
    assert!(told.contains("warning[unsatisfiable] a"), "{told}");
    assert!(!told.contains("error["), "{told}");
}

#[test]
fn lint_refuses_a_tool_without_a_name() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "x.json",
        r#"{"description": "d", "inputSchema": {"type": "object"}}"#,
    );
    let told = canon_to(&sandbox, 1, &["lint", "x.json"]).out;
    assert!(
        told.contains("error[name] /: the tool has no name"),
        "{told}"
    );
    assert!(told.contains("json-schema: 1 of 1 tool invalid"), "{told}");
    // With a dialect, its own check says so, once.
    let told = canon_to(&sandbox, 1, &["lint", "--for", "openai-strict", "x.json"]).out;
    assert_eq!(told.matches("error[name]").count(), 1, "{told}");
    sandbox.write("x.json", "[1]");
    let told = canon_to(&sandbox, 1, &["lint", "x.json"]).out;
    assert!(told.contains("error[not-an-object]"), "{told}");
    // A schema by itself is not called by name, but it has to be read as one.
    sandbox.write(
        "x.json",
        r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#,
    );
    canon_to(&sandbox, 1, &["lint", "x.json"]);
    canon_to(
        &sandbox,
        0,
        &["lint", "--source-format", "json-schema", "x.json"],
    );
}

#[test]
fn parts_of_an_operation_that_cannot_be_read_are_named() {
    let sandbox = Sandbox::new();
    let text = r##"{"openapi": "3.0.0", "paths": {"/a": {"post": {"operationId": "a", "description": "d",
        "parameters": [{"$ref": "#/components/parameters/Missing"}],
        "requestBody": {"$ref": "other.yaml#/Body"}}}}}"##;
    sandbox.write("x.json", text);
    let lint = canon_to(&sandbox, 1, &["lint", "x.json"]).out;
    let emit = canon_to(
        &sandbox,
        1,
        &[
            "emit",
            "--target",
            "mcp",
            "--deny-loss",
            "semantic",
            "x.json",
        ],
    );
    for reference in ["#/components/parameters/Missing", "other.yaml#/Body"] {
        let expected = format!("error[dangling-reference] a: `{reference}` leads to nothing");
        assert!(lint.contains(&expected), "{lint}");
        assert!(emit.err.contains(reference), "{}", emit.err);
    }
    assert!(emit.err.contains("lost (semantic)"), "{}", emit.err);
    let path = r#"{"openapi": "3.0.0", "paths": {"/a": {"$ref": "other.yaml#/Path"}}}"#;
    sandbox.write("x.json", path);
    let lint = canon_to(&sandbox, 1, &["lint", "x.json"]).out;
    assert!(
        lint.contains("`other.yaml#/Path` leads to nothing"),
        "{lint}"
    );
    canon_to(&sandbox, 1, &["emit", "--target", "mcp", "x.json"]);
    let media = r#"{"openapi": "3.0.0", "paths": {"/a": {"post": {"operationId": "a", "description": "d",
        "requestBody": {"content": {"application/json": {"schema": {"type": "object"}},
        "text/plain": {"schema": {"type": "string"}}}}}}}}"#;
    sandbox.write("x.json", media);
    let lint = canon_to(&sandbox, 0, &["lint", "x.json"]).out;
    assert!(
        lint.contains("warning[other-media-type] a: `text/plain`"),
        "{lint}"
    );
}

#[test]
fn emission_for_gemini_names_the_dynamic_references_it_loses() {
    let sandbox = Sandbox::new();
    let dynamic = r##"{"name": "a", "description": "d", "inputSchema": {"type": "object", "$dynamicAnchor": "n",
        "properties": {"a": {"$dynamicRef": "#n"}}}}"##;
    let recursive = r##"{"name": "a", "description": "d", "inputSchema": {
        "$schema": "https://json-schema.org/draft/2019-09/schema", "type": "object", "$recursiveAnchor": true,
        "properties": {"a": {"$recursiveRef": "#"}}}}"##;
    for (text, lost) in [
        (dynamic, "lost (semantic) /inputs/properties/a/$dynamicRef"),
        (recursive, "/inputs/properties/a/$ref"),
    ] {
        sandbox.write("x.json", text);
        let told = canon_to(&sandbox, 0, &["emit", "--target", "gemini", "x.json"]);
        assert!(told.err.contains(lost), "{text}: {}", told.err);
    }
}

#[test]
fn no_list_of_tools_hides_another() {
    let sandbox = Sandbox::new();
    let other = ECHO.replace("echo", "exec_shell");
    let text = format!(r#"{{"tools": [{ECHO}], "result": {{"tools": [{other}]}}}}"#);
    sandbox.write("x.json", &text);
    let told = canon_to(&sandbox, 0, &["emit", "--target", "mcp", "x.json"]).out;
    for name in ["echo", "exec_shell"] {
        assert!(told.contains(&format!("\"name\": \"{name}\"")), "{told}");
    }
    sandbox.write("before.json", &format!(r#"{{"tools": [{ECHO}]}}"#));
    let told = sandbox.watch_to(1, &["diff", "--fail-on", "any", "before.json", "x.json"]);
    assert!(told.out.contains("ADDED exec_shell"), "{}", told.out);
}
