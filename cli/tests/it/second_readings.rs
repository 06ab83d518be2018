//! Definitions that another reader reads in another way: boolean schemas, second schemas, other formats.

use super::sandbox::Sandbox;

fn tool(rest: &str) -> String {
    format!(r#"[{{"name": "t", "description": "d", {rest}}}]"#)
}

/// Compares two files and returns the report, after checking the exit code.
fn diff(code: i32, old: &str, new: &str) -> String {
    let sandbox = Sandbox::new();
    sandbox.write("old.json", old);
    sandbox.write("new.json", new);
    sandbox
        .watch_to(code, &["diff", "old.json", "new.json"])
        .out
}

#[test]
fn a_schema_may_be_a_boolean() {
    let (all, none) = (
        tool(r#""inputSchema": true"#),
        tool(r#""inputSchema": false"#),
    );
    assert!(diff(1, &all, &none).starts_with("BREAKING t"));
    assert!(diff(1, &none, &all).starts_with("TRUST t"));
    let object = tool(r#""inputSchema": {"type": "object"}"#);
    assert!(diff(0, &all, &object).starts_with("EQUIVALENT t"));
}

#[test]
fn a_schema_that_is_not_read_does_not_pass() {
    for second in ["parameters", "input_schema"] {
        let with = |required: &str| {
            tool(&format!(
                r#""inputSchema": {{"type": "object", "required": [{required}]}}, "{second}": {{"type": "object"}}"#
            ))
        };
        let said = diff(1, &with(""), &with(r#""z""#));
        assert!(said.starts_with("UNKNOWN t"), "{said}");
        assert!(
            said.contains("`inputSchema` was changed: a schema that `watch` does not compare"),
            "{said}"
        );
    }
}

#[test]
fn what_only_one_format_can_express_is_not_unchanged() {
    let anthropic = tool(r#""input_schema": {"type": "object"}"#);
    let plain = tool(r#""inputSchema": {"type": "object"}"#);
    assert_eq!(diff(0, &plain, &anthropic), "no drift: 1 tool unchanged\n");
    for rest in [
        r#""outputSchema": {"type": "object", "required": ["a"]}"#,
        r#""annotations": {"destructiveHint": true}"#,
    ] {
        let rich = tool(&format!(r#""inputSchema": {{"type": "object"}}, {rest}"#));
        let said = diff(1, &rich, &anthropic);
        assert!(
            said.contains("the format of the definition changed from mcp to anthropic"),
            "{said}"
        );
        assert!(
            said.ends_with("1 tool drifted: 1 unknown; 0 unchanged\n"),
            "{said}"
        );
    }
}

#[test]
fn the_id_of_a_skill_is_a_name() {
    let card = |id: &str| {
        format!(
            r#"{{"name": "card", "description": "d", "url": "https://a.example", "version": "1",
            "protocolVersion": "0.3.0", "capabilities": {{}}, "defaultInputModes": ["text"],
            "defaultOutputModes": ["text"],
            "skills": [{{"id": "{id}", "name": "t", "description": "does", "tags": ["x"]}}]}}"#
        )
    };
    let said = diff(1, &card("one"), &card("two"));
    assert!(
        said.contains("breaking    the id of the skill was changed: callers use it"),
        "{said}"
    );
}

/// An OpenAPI document with one operation.
fn document(operation: &str, path: &str, rest: &str) -> String {
    format!(
        r#"{{"openapi": "3.1.0", "info": {{"title": "t", "version": "1"}}, {rest}
        "paths": {{"/a": {{{path} "get": {{"operationId": "t", "description": "d", {operation}
            "responses": {{"200": {{"description": "ok"}}}}}}}}}}}}"#
    )
}

const HERE: &str = r#""servers": [{"url": "https://a.example/v1"}],"#;
const SLASH: &str = r#""servers": [{"url": "https://a.example/v1/"}],"#;
const ELSEWHERE: &str = r#""servers": [{"url": "https://evil.example/v1"}],"#;

#[test]
fn an_operation_that_states_the_same_route_is_the_same_route() {
    let schemes = |name: &str, scheme: &str| {
        format!(
            r#""components": {{"securitySchemes": {{"{name}": {{"type": "http", "scheme": "{scheme}"}}}}}},"#
        )
    };
    let bearer = |name: &str| schemes(name, "bearer");
    let by = |name: &str| format!(r#""security": [{{"{name}": []}}],"#);
    for (old, new) in [
        (document(HERE, "", ""), document(SLASH, "", "")),
        (document("", HERE, ""), document("", SLASH, "")),
        (document("", "", HERE), document(HERE, "", HERE)),
        (document("", "", HERE), document("", HERE, HERE)),
        (
            document(&by("a"), "", &bearer("a")),
            document(&by("b"), "", &bearer("b")),
        ),
        (
            document("", "", &(by("a") + &bearer("a"))),
            document(&by("a"), "", &(by("a") + &bearer("a"))),
        ),
    ] {
        let said = diff(0, &old, &new);
        assert!(said.starts_with("INFO "), "{said}");
    }
    for (old, new) in [
        (document(HERE, "", ""), document(ELSEWHERE, "", "")),
        (document("", HERE, ""), document("", ELSEWHERE, "")),
        (document("", "", HERE), document(ELSEWHERE, "", HERE)),
        (document("", "", HERE), document("", ELSEWHERE, HERE)),
        (
            document(&by("a"), "", &bearer("a")),
            document(&by("b"), "", &schemes("b", "basic")),
        ),
        (
            document("", "", &(by("a") + &bearer("a"))),
            document(r#""security": [],"#, "", &(by("a") + &bearer("a"))),
        ),
    ] {
        let said = diff(1, &old, &new);
        assert!(said.contains("TRUST "), "{said}");
    }
}

#[test]
fn other_values_of_results_are_not_more_of_the_same() {
    let sandbox = Sandbox::new();
    sandbox.write("t.json", &tool(r#""inputSchema": {"type": "object"}"#));
    let write = |name: &str, values: [&str; 2]| {
        let lines = values.map(|value| {
            format!("{{\"tool\": \"t\", \"result\": {{\"state\": \"{value}\"}}}}\n").repeat(30)
        });
        sandbox.write(name, &lines.concat());
    };
    write("old.jsonl", ["open", "closed"]);
    write("new.jsonl", ["won", "lost"]);
    sandbox.watch_to(0, &["baseline", "t.json", "--responses", "old.jsonl"]);
    let said = sandbox.watch_to(0, &["check", "t.json", "--responses", "new.jsonl"]);
    assert!(
        said.out
            .contains("  behavioural value: `/state`: new value"),
        "{}",
        said.out
    );
}
