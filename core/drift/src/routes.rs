//! Changes of a call's destination and of the credentials that it must present.

use toolwarden_model::json::Pointer;

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
