//! Variants of clients: servers may offer different tools to clients with different capabilities.

use std::sync::{Arc, LazyLock};

use serde_json::Value;
use serde_json::value::RawValue;
use toolwarden_model::Fingerprint;

use crate::upstream::gateway_client_info;

/// The longest name that is written in full; a longer one is cut and made unique with a digest.
const MAX_NAME_CHARS: usize = 120;

/// The capabilities of one client, as names under which the offers of servers are pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientVariant {
    /// For servers that the client uses in the era of their main link; `None` if the capabilities are those of
    /// the gateway itself.
    pub capabilities: Option<Arc<str>>,
    /// For servers whose main link is stateless, while this client needs the handshake.
    pub handshake: Arc<str>,
}

impl ClientVariant {
    /// The variant of a client with these capabilities.
    #[must_use]
    pub fn from_capabilities(capabilities: &RawValue) -> Self {
        static OWN: LazyLock<String> =
            LazyLock::new(|| describe_capabilities(&gateway_client_info().capabilities));
        let described = describe_capabilities(capabilities);
        Self {
            capabilities: (described != *OWN).then(|| format!("client:{described}").into()),
            handshake: format!("handshake:{described}").into(),
        }
    }
}

/// Capabilities as one readable line, the same for the same capabilities whatever their formatting:
/// `elicitation.url,roots.listChanged`.
fn describe_capabilities(capabilities: &RawValue) -> String {
    let value: Value = serde_json::from_str(capabilities.get()).unwrap_or_default();
    let mut leaves = Vec::new();
    collect(&value, String::new(), &mut leaves);
    leaves.sort_unstable();
    let text = match leaves.is_empty() {
        true => "none".to_owned(),
        false => leaves.join(","),
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._,/-".contains(&byte);
    let keys_are_plain = !has_dotted_key(&value);
    if text.len() <= MAX_NAME_CHARS && text.bytes().all(is_plain) && keys_are_plain {
        return text;
    }
    let shown = text.chars().filter(|it| it.is_ascii_graphic());
    let shown: String = shown.take(MAX_NAME_CHARS).collect();
    let digest = Fingerprint::of(&value).to_string();
    let digest: String = digest.chars().take(12).collect();
    format!("{shown}#{digest}")
}

fn collect(value: &Value, path: String, leaves: &mut Vec<String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                let path = match path.is_empty() {
                    true => key.clone(),
                    false => format!("{path}.{key}"),
                };
                collect(value, path, leaves);
            }
        }
        Value::Object(_) | Value::Bool(true) if path.is_empty() => {}
        Value::Object(_) | Value::Bool(true) => leaves.push(path),
        other => leaves.push(format!("{path}={other}")),
    }
}

/// Whether a key looks like a path, so that two different objects may have the same line. `{}` and `true` are
/// not distinguished: both declare a capability.
fn has_dotted_key(value: &Value) -> bool {
    value.as_object().is_some_and(|members| {
        let mut members = members.iter();
        members.any(|(key, value)| key.contains(['.', ',']) || has_dotted_key(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        ClientVariant::from_capabilities(&raw).handshake.to_string()
    }

    #[test]
    fn the_same_capabilities_have_one_name() {
        for (text, name) in [
            ("{}", "handshake:none"),
            (
                r#"{"roots":{"listChanged":true},"elicitation":{"url":{}, "form":{}}}"#,
                "handshake:elicitation.form,elicitation.url,roots.listChanged",
            ),
            (
                r#"{ "elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}"#,
                "handshake:elicitation.form,elicitation.url,roots.listChanged",
            ),
        ] {
            assert_eq!(of(text), name, "{text}");
        }
    }

    #[test]
    fn different_capabilities_have_different_names() {
        let names = [
            r#"{"a":{"b":{}}}"#,
            r#"{"a.b":{}}"#,
            r#"{"a":{},"b":{}}"#,
            r#"{"a,b":{}}"#,
            r#"{"a":false}"#,
            r#"{"a":{"b":[1]}}"#,
            &format!(r#"{{"{}x":{{}}}}"#, "a".repeat(200)),
            &format!(r#"{{"{}y":{{}}}}"#, "a".repeat(200)),
        ]
        .map(of);
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        assert!(names.iter().all(|it| it.len() < 160), "{names:?}");
    }

    #[test]
    fn the_gateway_itself_is_no_variant() {
        let own = gateway_client_info().capabilities;
        assert_eq!(ClientVariant::from_capabilities(&own).capabilities, None);
        let none = RawValue::from_string("{}".to_owned()).unwrap();
        let none = ClientVariant::from_capabilities(&none);
        assert_eq!(none.capabilities.as_deref(), Some("client:none"));
    }
}
