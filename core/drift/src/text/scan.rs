use toolwarden_model::json::Value;

use super::finding::TextFinding;
use super::hidden::StringOrigin;
use super::walk::{StringRole, for_each_string};
use super::{annotations, bidi, confusable, definition_parts, hidden, injection, terminal};

/// Every text finding of one definition: every string at every pointer, property names included.
///
/// The pointer of a finding in a key is the pointer of the member. Findings come in the order of
/// the text; their number per string and detector is bounded.
#[must_use]
pub fn scan(definition: &Value) -> Vec<TextFinding> {
    let mut findings = Vec::new();
    let name = definition_parts::tool_name(definition).map(|(pointer, _)| pointer);
    for_each_string(definition, |pointer, text, role| {
        let is_name = match role {
            StringRole::Property => true,
            StringRole::Text => name.as_ref() == Some(pointer),
            StringRole::Key => false,
        };
        terminal::scan(pointer, text, &mut findings);
        if !text.is_ascii() {
            let manner = match role {
                StringRole::Text if !is_name => StringOrigin::Prose,
                StringRole::Text | StringRole::Property | StringRole::Key => StringOrigin::Name,
            };
            hidden::scan(pointer, text, manner, &mut findings);
            bidi::scan(pointer, text, &mut findings);
        }
        if is_name && !text.is_ascii() {
            confusable::scan(pointer, text, &mut findings);
        }
        injection::scan(pointer, text, &mut findings);
    });
    annotations::scan(definition, &mut findings);
    findings
}
