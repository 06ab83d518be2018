use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jsonschema::{Draft, Validator};
use serde_json::Value;

/// Asks the validator whether texts have a format.
#[derive(Default)]
pub(super) struct FormatValidator {
    validators: BTreeMap<Arc<str>, Option<Validator>>,
}

impl fmt::Debug for FormatValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.validators.keys()).finish()
    }
}

impl FormatValidator {
    /// Whether a text satisfies a schema of annotations that decide, given as its text.
    pub(super) fn accepts(&mut self, schema: &Arc<str>, text: &str) -> Option<bool> {
        let validator = self
            .validators
            .entry(Arc::clone(schema))
            .or_insert_with(|| validator(schema));
        let validator = validator.as_ref()?;
        Some(validator.is_valid(&Value::from(text)))
    }
}

/// A validator that asserts `format` and the content keywords, which draft 7 is the last draft to do;
/// `None` for an unknown format, for which it would accept everything.
fn validator(schema: &str) -> Option<Validator> {
    let schema: Value = serde_json::from_str(schema).ok()?;
    let options = jsonschema::options();
    let known = [Draft::Draft7, Draft::Draft202012]
        .into_iter()
        .find(|draft| {
            let format = schema.get("format").and_then(Value::as_str);
            format.is_none_or(|format| options.is_known_format(*draft, format))
        });
    options
        .with_draft(known?)
        .offline()
        .should_validate_formats(true)
        .build(&schema)
        .ok()
}

/// Texts that have a format or may have it; the validator decides.
pub(crate) fn format_samples(schema: &str) -> &'static [&'static str] {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    match schema
        .get("format")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "date-time" => &["2024-01-31T12:00:00Z", "1999-12-31T23:59:59.5+02:00"],
        "date" => &["2024-01-31", "1999-12-31"],
        "time" => &["12:00:00Z", "23:59:59.5+02:00"],
        "duration" => &["P1D", "PT2H"],
        "email" | "idn-email" => &["a@example.com", "b@example.org"],
        "hostname" | "idn-hostname" => &["example.com", "a"],
        "ipv4" => &["127.0.0.1", "10.0.0.1"],
        "ipv6" => &["::1", "2001:db8::1"],
        "uri" | "iri" => &["https://example.com/", "urn:a:b"],
        "uri-reference" | "iri-reference" => &["https://example.com/", "a/b", ""],
        "uri-template" => &["https://example.com/{a}", "a"],
        "uuid" => &[
            "2eb8aa08-aa98-11ea-b4aa-73b441d16380",
            "00000000-0000-4000-8000-000000000000",
        ],
        "json-pointer" => &["", "/a"],
        "relative-json-pointer" => &["0", "1/a"],
        "regex" => &["a", "^a$"],
        _ => &[
            "", "a", "0", "{}", "e30=", "\\", "{", "[", "(", " ", "a b", "ü",
        ],
    }
}
