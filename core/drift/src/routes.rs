//! Changes of a call's destination and of the credentials that it must present.

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer, to_canonical_string};

use crate::change::{Change, ChangeClass};
use crate::facet::ObservedDefinition;

/// The rule of changes that state the same route in other words.
pub(crate) const SAME_ROUTE: &str = "same-route";

/// Where a document says which security schemes there are.
const SCHEMES: [&str; 4] = [
    "/components/securitySchemes",
    "/components",
    "/securitySchemes",
    "/securityDefinitions",
];

/// Where a document says where calls go and what they present.
const ROUTES: [&str; 5] = [
    "servers",
    "security",
    "components",
    "securitySchemes",
    "securityDefinitions",
];

/// Marks the changes of a document that only state the same route in other words: another name of a
/// security scheme, or a slash at the end of a server's URL.
pub(crate) fn mark_same_route(
    changes: &mut [Change],
    old: &ObservedDefinition<'_>,
    new: &ObservedDefinition<'_>,
) {
    let place = Pointer::of(["extensions/raw", "document"]);
    let (Some(before), Some(after)) = (place.find(old.definition), place.find(new.definition))
    else {
        return;
    };
    let is_route = |change: &&mut Change| {
        // A name that says more than a name is text.
        if change.class != ChangeClass::Behavioural {
            return false;
        }
        let segments: Vec<String> = change.pointer.segments().collect();
        match segments.as_slice() {
            [raw, document, key, rest @ ..]
                if raw == "extensions/raw" && document == "document" =>
            {
                // Other components of a document are not about its calls.
                let first = rest.first().map(String::as_str);
                let is_other = matches!(first, Some("schemas" | "parameters" | "responses"));
                ROUTES.contains(&key.as_str()) && !(key == "components" && is_other)
            }
            _ => false,
        }
    };
    let mut routes = changes.iter_mut().filter(is_route).peekable();
    if routes.peek().is_none() || route_content(before) != route_content(after) {
        return;
    }
    for change in routes {
        change.rule = SAME_ROUTE;
        change.class = ChangeClass::Info;
        change.message.push_str(": the same route in other words");
    }
}

/// What a document says about its calls, without the names of its security schemes.
fn route_content(document: &Value) -> Vec<String> {
    let schemes = SCHEMES.iter().find_map(|place| {
        let schemes = document.pointer(place)?.as_object()?;
        let is_scheme = |it: &Value| it.get("type").is_some_and(Value::is_string);
        schemes.values().all(is_scheme).then_some(schemes)
    });
    let content = |name: &str| match schemes.and_then(|schemes| schemes.get(name)) {
        Some(scheme) => to_canonical_string(scheme),
        None => name.to_owned(),
    };
    let mut said: Vec<String> = schemes
        .into_iter()
        .flatten()
        .map(|(name, _)| content(name))
        .collect();
    said.sort();
    let servers = document.get("servers").and_then(Value::as_array);
    for server in servers.into_iter().flatten() {
        let mut server = server.clone();
        if let Some(Value::String(url)) = server.get_mut("url") {
            url.truncate(url.trim_end_matches('/').len());
        }
        said.push(format!("server {}", to_canonical_string(&server)));
    }
    let required = document.get("security").and_then(Value::as_array);
    for alternative in required.into_iter().flatten() {
        let names = alternative.as_object().into_iter().flatten();
        let written: Object = names
            .map(|(name, scopes)| (content(name), scopes.clone()))
            .collect();
        let written = to_canonical_string(&Value::Object(written));
        said.push(format!("security {written}"));
    }
    said
}

/// The effect on calls of a change at this place, if the place concerns their route. No model reads it
/// and no schema describes it, yet the same arguments have a different effect.
pub(crate) fn route_change(pointer: &Pointer) -> Option<&'static str> {
    let segments: Vec<String> = pointer.segments().collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["extensions/openapi", "method", ..] => Some("calls use another method"),
        ["extensions/openapi", "path", ..] => Some("calls go to another path"),
        ["extensions/openapi", "servers", ..]
        | ["extensions/raw", "document", "paths", _, "servers", ..] => {
            Some("calls go to another server")
        }
        ["extensions/raw", "document", "paths", _, _, "callbacks", ..]
        | ["extensions/raw", "document", "webhooks", ..] => Some("results go to another address"),
        [
            "extensions/raw",
            "document",
            "paths",
            _,
            _,
            "requestBody",
            "required",
        ] => Some("calls need a body, or need none, unlike before"),
        ["extensions/openapi", "arguments", _, "in" | "name"] => {
            Some("an argument is sent in another place")
        }
        [
            "extensions/openapi" | "extensions/a2a-skill",
            "security" | "securitySchemes" | "securityRequirements",
            ..,
        ]
        | [
            "security" | "securitySchemes" | "securityRequirements" | "security_requirements",
            ..,
        ] => Some("calls present other credentials"),
        _ => None,
    }
}
