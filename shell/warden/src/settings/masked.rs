//! The configuration in force, without its secrets.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::document::{Placed, Reader};
use toolwarden_model::json::{Object, Pointer};

use super::keys::ROOT;
use super::problem::MASK;
use super::table::{Kind, Table};
use super::{bare_url, origin_of};

/// What is written and what holds where nothing is, in the order of the table. `shown` has the texts
/// in place of those that referred to something.
pub(super) fn of(root: &Value, shown: &BTreeMap<Pointer, String>) -> Value {
    let masking = Masking { shown };
    masking.section(&ROOT, root, &Pointer::root(), Defaults::Shown)
}

/// Whether what holds without being written is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Defaults {
    Shown,
    /// For it is said elsewhere.
    LeftOut,
}

struct Masking<'m> {
    shown: &'m BTreeMap<Pointer, String>,
}

impl Masking<'_> {
    fn section(&self, table: &Table, value: &Value, at: &Pointer, defaults: Defaults) -> Value {
        let placed = Placed {
            pointer: at.clone(),
            value,
        };
        // Only for its keys, in whatever spelling; their mistakes were told before.
        let section = Reader::<toolwarden_model::document::Mistake>::default()
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

    fn value(&self, kind: Kind, value: &Value, at: &Pointer, defaults: Defaults) -> Value {
        let shown = self.shown.get(at).map(String::as_str);
        let text = shown.or(value.as_str());
        match (kind.of(value), value, text) {
            (Kind::Secret | Kind::SecretScalar, _, _) => MASK.into(),
            (Kind::Address, _, Some(text)) => bare_url(text).into(),
            (Kind::SecretAddress, _, Some(text)) => origin_of(text).into(),
            (Kind::Section(table), Value::Object(_), _) => self.section(table, value, at, defaults),
            (Kind::Names(kind, _), Value::Object(members), _) => {
                let members = members.iter().map(|(name, value)| {
                    let value = self.value(*kind, value, &at.child(name), defaults);
                    (name.clone(), value)
                });
                Value::Object(members.collect())
            }
            (Kind::List(kind), Value::Array(items), _) => self.items(*kind, items, at, defaults),
            (Kind::Texts, Value::Array(items), _) => self.items(Kind::Text, items, at, defaults),
            (_, _, Some(text)) => toolwarden_mcp::masked(text).into(),
            (_, _, None) => value.clone(),
        }
    }

    fn items(&self, kind: Kind, items: &[Value], at: &Pointer, defaults: Defaults) -> Value {
        let items = items.iter().enumerate();
        items
            .map(|(index, item)| self.value(kind, item, &at.index(index), defaults))
            .collect()
    }
}
