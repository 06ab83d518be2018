//! The effective configuration, without its secrets.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::document::{DocumentReader, LocatedValue};
use toolwarden_model::json::{Object, Pointer};

use super::key_table::{KeyTable, ValueKind};
use super::keys::ROOT;
use super::mask::MASK;
use super::{bare_url, origin_of};

/// The written values and the defaults, in the order of the table. `shown` has the texts that replace those
/// with references.
pub(super) fn mask_secrets(root: &Value, shown: &BTreeMap<Pointer, String>) -> Value {
    let masking = SecretMasker {
        masked_texts: shown,
    };
    masking.section(&ROOT, root, &Pointer::root(), Defaults::Shown)
}

/// Whether to show defaults.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Defaults {
    Shown,
    /// The defaults are shown elsewhere.
    LeftOut,
}

struct SecretMasker<'m> {
    masked_texts: &'m BTreeMap<Pointer, String>,
}

impl SecretMasker<'_> {
    fn section(&self, table: &KeyTable, value: &Value, at: &Pointer, defaults: Defaults) -> Value {
        let placed = LocatedValue {
            pointer: at.clone(),
            value,
        };
        // Used only for its keys, in any spelling; their mistakes were reported before.
        let section = DocumentReader::<toolwarden_model::document::DiagnosticKind>::default()
            .section(&placed, &table.keys());
        let mut out = Object::new();
        for field in table.all_fields() {
            let inside = match field.inherits {
                true => Defaults::LeftOut,
                false => defaults,
            };
            let masked = match section.said(field.name) {
                Some(written) => self.value(field.kind, written.value, &written.pointer, inside),
                None if inside == Defaults::LeftOut => continue,
                None => match field.default_value() {
                    Some(value) => self.value(field.kind, &value, &at.child(field.name), inside),
                    None => continue,
                },
            };
            out.insert(field.name.to_owned(), masked);
        }
        Value::Object(out)
    }

    fn value(&self, kind: ValueKind, value: &Value, at: &Pointer, defaults: Defaults) -> Value {
        let shown = self.masked_texts.get(at).map(String::as_str);
        let text = shown.or(value.as_str());
        match (kind.select(value), value, text) {
            (ValueKind::Secret | ValueKind::SecretScalar, _, _) => MASK.into(),
            (ValueKind::Address, _, Some(text)) => bare_url(text).into(),
            (ValueKind::SecretAddress, _, Some(text)) => origin_of(text).into(),
            (ValueKind::Section(table), Value::Object(_), _) => {
                self.section(table, value, at, defaults)
            }
            (ValueKind::Map(kind, _), Value::Object(members), _) => {
                let members = members.iter().map(|(name, value)| {
                    let value = self.value(*kind, value, &at.child(name), defaults);
                    (name.clone(), value)
                });
                Value::Object(members.collect())
            }
            (ValueKind::List(kind), Value::Array(items), _) => {
                self.items(*kind, items, at, defaults)
            }
            (ValueKind::TextList, Value::Array(items), _) => {
                self.items(ValueKind::Text, items, at, defaults)
            }
            (_, _, Some(text)) => toolwarden_mcp::mask_secrets(text).into(),
            (_, _, None) => value.clone(),
        }
    }

    fn items(&self, kind: ValueKind, items: &[Value], at: &Pointer, defaults: Defaults) -> Value {
        let items = items.iter().enumerate();
        items
            .map(|(index, item)| self.value(kind, item, &at.index(index), defaults))
            .collect()
    }
}
