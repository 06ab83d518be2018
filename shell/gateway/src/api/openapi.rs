//! The OpenAPI document, generated from the table of endpoints.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::error::ApiErrorKind;
use super::field::{ApiField, ApiFieldType};
use super::route::{ApiRoute, ResponseType, RouteAccess};
use super::routes::ROUTES;
use super::schemas::schemas;

/// The OpenAPI 3.1 description of the API.
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

fn operation(route: &ApiRoute) -> Value {
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
        RouteAccess::Open => json!([]),
        RouteAccess::Caller | RouteAccess::Admin => json!([{"bearer": []}, {"key": []}]),
    };
    members.insert("security".to_owned(), security);
    if route.access == RouteAccess::Admin {
        let text = "For administrators: principals named under `identity.admins`.";
        members.insert("description".to_owned(), text.into());
    }
    if let Some(fields) = route.body {
        members.insert("requestBody".to_owned(), request_body(fields));
    }
    operation
}

/// A name for generated clients: `getServersName`.
fn operation_id(route: &ApiRoute) -> String {
    let path = route.path.trim_start_matches("/api/v1");
    let words = path.split(|it: char| !it.is_ascii_alphanumeric());
    let words = words.filter(|word| !word.is_empty()).map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        first.to_uppercase() + rest
    });
    format!("{}{}", route.method.as_str(), words.collect::<String>())
}

fn parameters(route: &ApiRoute) -> Vec<Value> {
    let parameter = |place: &str, field: &ApiField| {
        let mut parameter = json!({
            "name": field.name,
            "in": place,
            "required": field.required,
            "description": field.description,
            "schema": field.kind.schema(),
        });
        if let (ApiFieldType::Names, Value::Object(members)) = (field.kind, &mut parameter) {
            // Separated by commas.
            members.insert("style".to_owned(), "form".into());
            members.insert("explode".to_owned(), false.into());
        }
        parameter
    };
    let named = route
        .path_params
        .iter()
        .map(|field| parameter("path", field));
    let query = route.query.iter().map(|field| parameter("query", field));
    named.chain(query).collect()
}

fn request_body(fields: &[ApiField]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| {
            let mut schema = field.kind.schema();
            if let Value::Object(members) = &mut schema {
                members.insert("description".to_owned(), field.description.into());
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

fn responses(route: &ApiRoute) -> Value {
    let mut responses: BTreeMap<String, Value> = BTreeMap::new();
    let answer = |description: &str| match route.response {
        ResponseType::Json(name) => json!({
            "description": description,
            "content": {"application/json": {"schema": reference(name)}},
        }),
        ResponseType::Text(media_type) => json!({
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
    if let Some(status) = route.other_status {
        let reason = status.canonical_reason().unwrap_or_default();
        responses.insert(status.as_u16().to_string(), answer(reason));
    }
    json!(responses)
}

/// The codes an error may have.
pub(super) fn error_kinds() -> Vec<&'static str> {
    ApiErrorKind::ALL.iter().map(|kind| kind.as_str()).collect()
}

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
