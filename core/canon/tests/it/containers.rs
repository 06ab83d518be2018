//! Containers that hold tool definitions.

use serde_json::{Value, json};
use toolwarden_canon::{
    CanonicalizedTool, Container, EditKind, EmitTarget, FormatChoice, LossKind, canonicalize,
    canonicalize_item, emit, split, unread_schemas,
};
use toolwarden_model::Format;

const SCHEMA: &str = r#"{"type":"object"}"#;

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

/// The container and, for each tool, `pointer name format`.
fn check(document: Value, container: Container, expected: &[&str]) {
    let text = document.to_string();
    let read = canonicalize(document, FormatChoice::Detect).unwrap();
    let line = |tool: &CanonicalizedTool| {
        format!("{} {} {}", tool.pointer, tool.tool.name, tool.tool.format)
    };
    assert_eq!(read.container, container, "{text}");
    assert_eq!(
        read.tools.iter().map(line).collect::<Vec<_>>(),
        expected,
        "{text}"
    );
    // Splitting the text first finds the same tools in the same places.
    let items = split(&text).unwrap();
    let from_text: Vec<String> = items
        .iter()
        .flat_map(|item| canonicalize_item(item, FormatChoice::Detect).unwrap().tools)
        .map(|tool| line(&tool))
        .collect();
    assert_eq!(from_text, expected, "{text}");
}

#[test]
fn lists() {
    let mcp = json!({"name": "a", "inputSchema": schema()});
    let chat = json!({"type": "function", "function": {"name": "b"}});
    check(mcp.clone(), Container::Single, &["/ a mcp"]);
    check(
        json!([mcp, chat]),
        Container::Array,
        &["/0 a mcp", "/1 b openai-chat"],
    );
    check(
        json!([[mcp], [[chat]]]),
        Container::Array,
        &["/0/0 a mcp", "/1/0/0 b openai-chat"],
    );
    check(
        json!({"server": "x", "tools": [mcp]}),
        Container::Tools,
        &["/tools/0 a mcp"],
    );
    check(
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [mcp, {"name": "bare"}], "nextCursor": "c"}}),
        Container::ToolsList,
        &["/result/tools/0 a mcp", "/result/tools/1 bare raw"],
    );
    check(json!([]), Container::Array, &[]);
    let report = json!({"schema": "toolwarden/canon/canonicalize/v1", "tools": [{"file": "f", "tool": mcp}]});
    check(report, Container::Tools, &["/tools/0/tool a mcp"]);
}

#[test]
fn no_list_hides_another() {
    let mcp = |name: &str| json!({"name": name, "inputSchema": {}});
    check(
        json!({"tools": [mcp("a")], "result": {"tools": [mcp("b")]}}),
        Container::ToolsList,
        &["/result/tools/0 b mcp", "/tools/0 a mcp"],
    );
    check(
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [mcp("b")], "functions": [mcp("c")]}, "functions": [mcp("d")]}),
        Container::ToolsList,
        &[
            "/result/tools/0 b mcp",
            "/result/functions/0 c mcp",
            "/functions/0 d mcp",
        ],
    );
    check(
        json!({"tools": [mcp("a")], "functionDeclarations": [{"name": "e"}]}),
        Container::Tools,
        &["/tools/0 a mcp", "/functionDeclarations/0 e gemini"],
    );
    check(
        json!({"tools": [mcp("a")], "openapi": "3.1.0", "paths": {"/f": {"get": {"operationId": "f"}}}}),
        Container::Tools,
        &["/paths/~1f/get f openapi", "/tools/0 a mcp"],
    );
}

#[test]
fn a_list_does_not_hide_the_definition_it_stands_in() {
    let other = json!({"name": "b", "inputSchema": {}});
    for (key, container) in [
        ("tools", Container::Tools),
        ("functions", Container::Functions),
        ("skills", Container::AgentCard),
        ("functionDeclarations", Container::FunctionDeclarations),
    ] {
        let definition = json!({"name": "a", "inputSchema": {}, key: [other]});
        let inner = match key {
            "functionDeclarations" => "gemini",
            _ => "mcp",
        };
        let inner = format!("/{key}/0 b {inner}");
        check(definition, container, &["/ a mcp", &inner]);
    }
    check(
        json!({"name": "a", "inputSchema": {}, "result": {"tools": [other]}}),
        Container::ToolsList,
        &["/ a mcp", "/result/tools/0 b mcp"],
    );
    // The settings of an agent may look like a definition.
    check(
        json!({"name": "a", "parameters": {"temperature": 1}, "tools": [other]}),
        Container::Tools,
        &["/ a openai-legacy", "/tools/0 b mcp"],
    );
}

#[test]
fn request_bodies() {
    let chat = json!({"type": "function", "function": {"name": "b"}});
    check(
        json!({"model": "m", "messages": [{"role": "system", "tools": [chat]}, {"role": "user"}], "tools": [chat]}),
        Container::Tools,
        &[
            "/tools/0 b openai-chat",
            "/messages/0/tools/0 b openai-chat",
        ],
    );
    check(
        json!({"model": "m", "system": "s", "tools": [{"name": "c", "input_schema": schema()}, {"type": "web_search_20250305", "name": "web_search"}]}),
        Container::Tools,
        &[
            "/tools/0 c anthropic",
            "/tools/1 web_search anthropic-server",
        ],
    );
    check(
        json!({"messages": [], "toolConfig": {"tools": [{"toolSpec": {"name": "d", "inputSchema": {"json": {}}}}, {"cachePoint": {"type": "default"}}]}}),
        Container::Tools,
        &[
            "/toolConfig/tools/0 d bedrock",
            "/toolConfig/tools/1 cachePoint bedrock-system",
        ],
    );
    check(
        json!({"contents": [], "tools": [{"functionDeclarations": [{"name": "e"}, {"name": "f", "parameters": {"type": "object"}}], "googleSearch": {}}]}),
        Container::Tools,
        &[
            "/tools/0/functionDeclarations/0 e gemini",
            "/tools/0/functionDeclarations/1 f gemini",
            "/tools/0/googleSearch googleSearch gemini-hosted",
        ],
    );
    check(
        json!({"model": "m", "functions": [{"name": "g", "parameters": schema()}, {"name": "h"}]}),
        Container::Functions,
        &[
            "/functions/0 g openai-legacy",
            "/functions/1 h openai-legacy",
        ],
    );
    check(
        json!({"type": "namespace", "name": "crm", "description": "d", "tools": [{"type": "function", "name": "i", "strict": true}]}),
        Container::Namespace,
        &["/tools/0 i openai-responses"],
    );
}

#[test]
fn maps_and_cards() {
    check(
        json!({"weather": {"description": "d", "inputSchema": schema()}, "news": {"parameters": schema()}}),
        Container::NameMap,
        &["/weather weather mcp", "/news news openai-legacy"],
    );
    check(
        json!({"name": "agent", "skills": [{"id": "s", "name": "Skill", "description": "d", "tags": []}]}),
        Container::AgentCard,
        &["/skills/0 Skill a2a-skill"],
    );
}

#[test]
fn json_lines_and_values_in_a_row() {
    let text = "\u{feff}{\"name\":\"a\",\"inputSchema\":{}}\n\n[{\"name\":\"b\",\"inputSchema\":{}}]\r\n{\n\"name\":\"c\",\n\"input_schema\":{}}";
    let items = split(text).unwrap();
    let texts: Vec<&str> = items.iter().map(|item| item.text).collect();
    assert_eq!(
        texts,
        [
            "{\"name\":\"a\",\"inputSchema\":{}}",
            "{\"name\":\"b\",\"inputSchema\":{}}",
            "{\n\"name\":\"c\",\n\"input_schema\":{}}"
        ]
    );
    let error = split("{\"a\":1}\n{\"b\":").unwrap_err();
    assert_eq!(
        error.to_string(),
        "unexpected end of the text at line 2, column 5"
    );
    assert_eq!(
        split("  \n").unwrap_err().to_string(),
        "unexpected end of the text at line 2, column 1"
    );
}

#[test]
fn openapi_3_operations() {
    let document = json!({
        "openapi": "3.0.3",
        "paths": {
            "/pets/{id}": {
                "parameters": [{"$ref": "#/components/parameters/Id"}],
                "get": {
                    "operationId": "getPet", "summary": "Get a pet", "description": "Gets one pet.", "tags": ["pets"],
                    "parameters": [
                        {"name": "id", "in": "query", "schema": {"type": "string"}},
                        {"name": "trace", "in": "header", "schema": {"type": "string", "example": "t"}},
                        {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
                        {"name": "session", "in": "cookie", "required": true, "schema": {"type": "string"}}
                    ],
                    "responses": {"404": {}, "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}}
                },
                "put": {
                    "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}},
                    "responses": {"204": {}}
                },
                "patch": {
                    "operationId": "patchPet",
                    "requestBody": {"content": {"application/json": {"schema": {"oneOf": [{"type": "object"}, {"type": "array", "items": {}}]}}}},
                    "responses": {}
                }
            }
        },
        "components": {
            "parameters": {"Id": {"name": "id", "in": "path", "required": true, "description": "Which", "schema": {"type": "integer", "minimum": 0, "exclusiveMinimum": true}}},
            "schemas": {
                "Pet": {"type": "object", "properties": {"name": {"type": "string", "nullable": true}, "owner": {"$ref": "#/components/schemas/Owner"}}, "required": ["name"]},
                "Owner": {"type": "object", "properties": {"pets": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}}}
            }
        }
    });
    check(
        document.clone(),
        Container::Openapi,
        &[
            "/paths/~1pets~1{id}/get getPet openapi",
            "/paths/~1pets~1{id}/put put_pets_id openapi",
            "/paths/~1pets~1{id}/patch patchPet openapi",
        ],
    );
    let tools = canonicalize(document, FormatChoice::Detect).unwrap().tools;
    let owner = json!({"type": "object", "properties": {"pets": {"type": "array", "items": {"$ref": "#/$defs/Pet"}}}});
    let pet = json!({"type": "object", "properties": {"name": {"type": ["string", "null"]}, "owner": {"$ref": "#/$defs/Owner"}}, "required": ["name"]});
    let id = json!({"type": "integer", "exclusiveMinimum": 0, "description": "Which"});
    let get = &tools[0].tool;
    assert_eq!(
        (get.title.as_deref(), get.description.as_str()),
        (Some("Get a pet"), "Gets one pet.")
    );
    assert_eq!(
        json!(get.inputs),
        json!({"type": "object", "properties": {
            "id": {"type": "string"}, "trace": {"type": "string", "examples": ["t"]}, "session": {"type": "string"},
            "path_id": id}, "required": ["session", "path_id"]})
    );
    assert_eq!(
        json!(get.outputs),
        json!({"$ref": "#/$defs/Pet", "$defs": {"Owner": owner, "Pet": pet}})
    );
    let put = &tools[1].tool;
    assert_eq!(
        json!(put.inputs),
        json!({"type": "object", "properties": {"id": id, "name": {"type": ["string", "null"]}, "owner": {"$ref": "#/$defs/Owner"}},
            "required": ["id", "name"], "$defs": {"Owner": owner, "Pet": pet}})
    );
    let patch = &tools[2].tool;
    assert_eq!(
        json!(patch.inputs),
        json!({"type": "object", "properties": {"id": id, "body": {"oneOf": [{"type": "object"}, {"type": "array", "items": {}}]}}, "required": ["id"]})
    );
}

#[test]
fn openapi_2_and_3_1_operations() {
    let two = json!({"swagger": "2.0", "paths": {"/a": {"post": {"operationId": "a", "parameters": [
        {"name": "limit", "in": "query", "type": "integer", "required": false},
        {"name": "body", "in": "body", "required": true, "schema": {"$ref": "#/definitions/B"}}],
        "responses": {"200": {"schema": {"$ref": "#/definitions/B"}}}}}},
        "definitions": {"B": {"type": "object", "properties": {"x": {"type": "string"}}}}});
    let tool = canonicalize(two, FormatChoice::Detect)
        .unwrap()
        .tools
        .remove(0)
        .tool;
    assert_eq!(
        json!(tool.inputs),
        json!({"type": "object", "properties": {"limit": {"type": "integer"}, "x": {"type": "string"}}})
    );
    assert_eq!(
        tool.outputs["$defs"]["B"]["properties"]["x"],
        json!({"type": "string"})
    );
    let three = json!({"openapi": "3.1.0", "paths": {"/a": {"get": {"parameters": [
        {"name": "q", "in": "query", "schema": {"type": ["string", "null"], "const": "x", "exclusiveMaximum": 5}}], "responses": {}}}}});
    let tool = canonicalize(three, FormatChoice::Detect)
        .unwrap()
        .tools
        .remove(0)
        .tool;
    assert_eq!(
        tool.inputs["properties"]["q"],
        json!({"type": ["string", "null"], "const": "x", "exclusiveMaximum": 5})
    );
    assert_eq!(tool.name, "get_a");
}

#[test]
fn openapi_oddities_end_and_lose_nothing() {
    let document = json!({"openapi": "3.0.0", "paths": {
        "/a/{id}": {"post": {"operationId": "a", "parameters": [
            {"name": "query_id", "in": "query", "schema": {"type": "string"}},
            {"name": "id", "in": "path", "schema": {"type": "string"}},
            {"name": "id", "in": "query", "schema": {"type": "boolean"}}],
            "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/a~1b"}}}},
            "responses": {"204": {}, "200": {"content": {"application/json": {"schema": {"type": "object"}}}}}}},
        "/b": {"$ref": "#/components/pathItems/B"}},
        "components": {"pathItems": {"B": {"get": {"operationId": "b", "responses": {}}}}, "schemas": {
            "a/b": {"type": "object", "properties": {
                "self": {"$ref": "#/components/schemas/a~1b"},
                "maybe": {"nullable": true, "allOf": [{"$ref": "#/components/schemas/C"}]}}, "required": ["self"]},
            "C": {"type": "string"}}}});
    let tools = canonicalize(document, FormatChoice::Detect).unwrap().tools;
    let names: Vec<&str> = tools.iter().map(|found| found.tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let inputs = json!(tools[0].tool.inputs);
    let arguments: Vec<&String> = inputs["properties"].as_object().unwrap().keys().collect();
    assert_eq!(
        arguments,
        ["query_id", "id", "query_query_id", "self", "maybe"]
    );
    assert_eq!(
        inputs["properties"]["query_query_id"],
        json!({"type": "boolean"})
    );
    assert_eq!(
        inputs["properties"]["maybe"],
        json!({"anyOf": [{"allOf": [{"$ref": "#/$defs/C"}]}, {"type": "null"}]})
    );
    assert_eq!(json!(tools[0].tool.outputs), json!({"type": "object"}));
}

/// What is not read of each operation of a document, and whether its loss changes which calls are valid.
fn unread(document: Value) -> Vec<(String, Vec<String>, Option<LossKind>)> {
    let read = canonicalize(document, FormatChoice::Detect).unwrap();
    let of = |found: CanonicalizedTool| {
        let unread = unread_schemas(&found.tool);
        let unread = unread
            .iter()
            .map(|it| format!("{} {}", it.pointer, it.problem.describe()));
        let (name, unread) = (found.tool.name.clone(), unread.collect());
        let emission = emit(found.tool, EmitTarget::Mcp);
        let losses = emission.into_iter().flat_map(|it| it.edits);
        let loss = losses
            .filter(|edit| edit.path.as_str() == "/extensions/openapi/unread")
            .find_map(|edit| match edit.kind {
                EditKind::Loss(kind) => Some(kind),
                EditKind::Change => None,
            });
        (name, unread, loss)
    };
    read.tools.into_iter().map(of).collect()
}

#[test]
fn a_reference_that_leads_nowhere_is_a_loss_of_arguments() {
    let document = json!({"openapi": "3.0.0", "paths": {
        "/own": {"post": {"operationId": "own", "parameters": [
            {"$ref": "#/components/parameters/Missing"}, {"name": "q", "in": "query"}, "q"],
            "requestBody": {"$ref": "other.yaml#/B"}}},
        "/shared": {"parameters": [{"$ref": "https://example.com/p.json"}], "get": {"operationId": "shared"}},
        "/result": {"get": {"operationId": "result", "responses": {"200": {"$ref": "#/components/responses/R"}}}},
        "/cycle": {"get": {"operationId": "cycle", "parameters": [{"$ref": "#/components/parameters/C"}]}},
        "/path": {"$ref": "paths.yaml#/x"}},
        "components": {"parameters": {"C": {"$ref": "#/components/parameters/C"}}}});
    let dangling = |place: &str, reference: &str| {
        format!(
            "{place} `{reference}` leads to nothing in this document, so what it declares is not read"
        )
    };
    let semantic = Some(LossKind::Semantic);
    let own = vec![
        dangling("/parameters/0", "#/components/parameters/Missing"),
        "/parameters/2 this is a string, not an object, so it is not read".to_owned(),
        dangling("/requestBody", "other.yaml#/B"),
    ];
    let shared = vec![dangling("/", "https://example.com/p.json")];
    let result = vec![dangling("/responses/200", "#/components/responses/R")];
    let cycle = vec![dangling("/parameters/0", "#/components/parameters/C")];
    let path = vec![dangling("/", "paths.yaml#/x")];
    assert_eq!(
        unread(document),
        [
            ("own".to_owned(), own, semantic),
            ("shared".to_owned(), shared, semantic),
            ("result".to_owned(), result, Some(LossKind::Metadata)),
            ("cycle".to_owned(), cycle, semantic),
            // A tool without a name is refused, so there is nothing to lose.
            (String::new(), path, None),
        ]
    );
    let alone = json!({"operationId": "a", "parameters": [{"$ref": "#/components/parameters/P"}], "responses": {}});
    let missing = vec![dangling("/parameters/0", "#/components/parameters/P")];
    assert_eq!(unread(alone), [("a".to_owned(), missing, semantic)]);
}

#[test]
fn a_body_in_another_media_type_is_a_loss_where_its_schema_differs() {
    let body = |other: Value| {
        json!({"openapi": "3.0.0", "paths": {"/a": {"post": {"operationId": "a", "requestBody": {"content": {
            "application/json": {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "multipart/form-data": {"schema": other}}}}}}})
    };
    let file =
        json!({"type": "object", "properties": {"f": {"type": "string", "format": "binary"}}});
    let lost = vec![
        "/requestBody/content/multipart~1form-data `multipart/form-data` has another schema than the media \
         type that is read, so it is not read"
            .to_owned(),
    ];
    assert_eq!(
        unread(body(file)),
        [("a".to_owned(), lost, Some(LossKind::Semantic))]
    );
    let same = body(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    assert_eq!(unread(same.clone()), [("a".to_owned(), Vec::new(), None)]);
    let read = canonicalize(same, FormatChoice::Detect).unwrap();
    let arguments = &read.tools[0].tool.extensions.get(&Format::Openapi).unwrap()["arguments"];
    let travels =
        json!({"media_type": "application/json", "other_media_types": ["multipart/form-data"]});
    assert_eq!(arguments["$body"], travels);
}

#[test]
fn a_file_of_openapi_2_is_a_string_of_bytes() {
    let document = json!({"swagger": "2.0", "paths": {"/a": {"post": {"operationId": "a",
        "consumes": ["multipart/form-data"], "parameters": [
            {"name": "file", "in": "formData", "type": "file", "required": true},
            {"name": "n", "in": "formData", "type": "integer"}],
        "responses": {"200": {"schema": {"type": "file"}}}}}}});
    let read = canonicalize(document, FormatChoice::Detect).unwrap();
    let tool = &read.tools[0].tool;
    let bytes = json!({"type": "string", "format": "binary"});
    assert_eq!(
        json!(tool.inputs),
        json!({"type": "object", "properties": {"file": bytes, "n": {"type": "integer"}}, "required": ["file"]})
    );
    assert_eq!(json!(tool.outputs), bytes);
    assert_eq!(
        tool.extensions.get(&Format::Openapi).unwrap()["arguments"],
        json!({"file": {"in": "formData"}, "n": {"in": "formData"}})
    );
}

#[test]
fn operations_beside_a_reference_to_others_are_read() {
    let document = json!({"openapi": "3.1.0", "paths": {"/a": {"$ref": "#/components/pathItems/A",
        "post": {"operationId": "own"}}},
        "components": {"pathItems": {"A": {"get": {"operationId": "referred"}, "post": {"operationId": "hidden"}}}}});
    check(
        document,
        Container::Openapi,
        &[
            "/paths/~1a/post own openapi",
            "/paths/~1a/get referred openapi",
        ],
    );
}

#[test]
fn gemini_null_is_null() {
    let declaration = json!({"name": "t", "description": "d", "parameters": {"type": "OBJECT", "properties": {
        "a": {"type": "STRING", "nullable": true}, "b": {"type": "STRING", "nullable": true, "enum": ["x"]},
        "c": {"type": "ARRAY", "minItems": "1", "items": {"type": "STRING"}}}}});
    let tool = canonicalize(declaration, FormatChoice::Detect)
        .unwrap()
        .tools
        .remove(0)
        .tool;
    assert_eq!(
        json!(tool.inputs["properties"]),
        json!({"a": {"type": ["string", "null"]}, "b": {"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "null"}]},
            "c": {"type": "array", "minItems": 1, "items": {"type": "string"}}})
    );
}
