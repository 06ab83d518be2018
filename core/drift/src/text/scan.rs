use toolwarden_model::json::Value;

use super::finding::Finding;
use super::hidden::Manner;
use super::walk::{Role, each_string};
use super::{annotations, bidi, confusable, hidden, injection, place, terminal};

/// Every text finding of one definition: every string at every pointer, property names included.
///
/// The pointer of a finding in a key is the pointer of the member. Findings come in the order of
/// the text; their number per string and detector is bounded.
#[must_use]
pub fn scan(definition: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    let name = place::name(definition).map(|(pointer, _)| pointer);
    each_string(definition, |pointer, text, role| {
        let is_name = match role {
            Role::Property => true,
            Role::Text => name.as_ref() == Some(pointer),
            Role::Key => false,
        };
        terminal::scan(pointer, text, &mut findings);
        if !text.is_ascii() {
            let manner = match role {
                Role::Text if !is_name => Manner::Prose,
                Role::Text | Role::Property | Role::Key => Manner::Name,
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
