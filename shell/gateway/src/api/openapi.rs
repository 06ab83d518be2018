//! The OpenAPI document, made of the table of endpoints.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::error::ErrorKind;
use super::field::{Field, Kind};
use super::route::{Access, Route, Shape};
use super::routes::ROUTES;
use super::schemas::schemas;

/// Everything about the API, as OpenAPI 3.1 has it.
#[must_use]
pub fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Value::Object(methods) = path {
            methods.insert(route.method.as_str().to_owned(), operation(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Toolwarden gateway",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Every tool call of every agent, pinned, decided, recorded",
            "license": {"name": env!("CARGO_PKG_LICENSE")},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A key or a token"},
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "parameters": parameters(route),
        "responses": responses(route),
    });
    let Value::Object(members) = &mut operation else {
        return operation;
    };
    let security = match route.access {
        Access::Open => json!([]),
        Access::Caller | Access::Admin => json!([{"bearer": []}, {"key": []}]),
    };
    members.insert("security".to_owned(), security);
    if route.access == Access::Admin {
        let text = "For administrators: principals named under `identity.admins`.";
        members.insert("description".to_owned(), text.into());
    }
    if let Some(fields) = route.body {
        members.insert("requestBody".to_owned(), request_body(fields));
    }
    operation
}

/// A name for programs that are generated: `getServersName`.
fn operation_id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/api/v1");
    let words = path.split(|it: char| !it.is_ascii_alphanumeric());
    let words = words.filter(|word| !word.is_empty()).map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        first.to_uppercase() + rest
    });
    format!("{}{}", route.method.as_str(), words.collect::<String>())
}

fn parameters(route: &Route) -> Vec<Value> {
    let parameter = |place: &str, field: &Field| {
        let mut parameter = json!({
            "name": field.name,
            "in": place,
            "required": field.required,
            "description": field.about,
            "schema": field.kind.schema(),
        });
        if let (Kind::Names, Value::Object(members)) = (field.kind, &mut parameter) {
            // Parted by commas.
            members.insert("style".to_owned(), "form".into());
            members.insert("explode".to_owned(), false.into());
        }
        parameter
    };
    let named = route.named.iter().map(|field| parameter("path", field));
    let query = route.query.iter().map(|field| parameter("query", field));
    named.chain(query).collect()
}

fn request_body(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| {
            let mut schema = field.kind.schema();
            if let Value::Object(members) = &mut schema {
                members.insert("description".to_owned(), field.about.into());
            }
            (field.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<&str> = fields
        .iter()
        .filter(|field| field.required)
        .map(|field| field.name)
        .collect();
    json!({
        "required": !required.is_empty(),
        "content": {"application/json": {"schema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }}},
    })
}

fn responses(route: &Route) -> Value {
    let mut responses: BTreeMap<String, Value> = BTreeMap::new();
    let answer = |description: &str| match route.answer {
        Shape::Json(name) => json!({
            "description": description,
            "content": {"application/json": {"schema": reference(name)}},
        }),
        Shape::Text(media_type) => json!({
            "description": description,
            "content": {media_type: {"schema": {"type": "string"}}},
        }),
    };
    responses.insert("200".to_owned(), answer("The answer"));
    for kind in route.all_errors() {
        let status = kind.status();
        let error = json!({
            "description": status.canonical_reason().unwrap_or_default(),
            "content": {"application/json": {"schema": reference("Error")}},
        });
        responses.insert(status.as_u16().to_string(), error);
    }
    if let Some(status) = route.also {
        let reason = status.canonical_reason().unwrap_or_default();
        responses.insert(status.as_u16().to_string(), answer(reason));
    }
    json!(responses)
}

/// The words an error may have.
pub(super) fn error_words() -> Vec<&'static str> {
    ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect()
}

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
