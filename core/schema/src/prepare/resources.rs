use std::collections::BTreeMap;

use fluent_uri::{Uri, UriRef};
use serde_json::Value;
use toolwarden_model::json::{Object, Pointer, percent_decoded};
use toolwarden_model::keywords::{children, subschemas};

use super::draft::Draft;

/// The base of a document that names none.
const NO_BASE: &str = "json-schema:///";

/// Every place of a document that a reference can name.
#[derive(Debug)]
pub(super) struct Resources<'s> {
    root: &'s Value,
    /// Where each identified schema stands.
    identified: BTreeMap<String, Pointer>,
    /// Where each anchor stands, under the identifier of its schema.
    anchors: BTreeMap<(String, String), Pointer>,
    /// The identifier each identified schema resolves references against.
    bases: BTreeMap<Pointer, String>,
    /// How often each name occurs as a dynamic anchor.
    dynamic: BTreeMap<String, usize>,
}

impl<'s> Resources<'s> {
    pub(super) fn of(root: &'s Value, draft: Draft) -> Self {
        let mut resources = Self {
            root,
            identified: BTreeMap::new(),
            anchors: BTreeMap::new(),
            bases: BTreeMap::new(),
            dynamic: BTreeMap::new(),
        };
        resources
            .identified
            .insert(NO_BASE.to_owned(), Pointer::root());
        resources.bases.insert(Pointer::root(), NO_BASE.to_owned());
        if !refers(root) {
            return resources;
        }
        let mut open = vec![(Pointer::root(), NO_BASE.to_owned(), root)];
        while let Some((at, base, schema)) = open.pop() {
            let Value::Object(members) = schema else {
                continue;
            };
            let base = resources.register(members, &at, base, draft);
            let children = subschemas(members, &at).into_iter();
            open.extend(children.map(|(pointer, child)| (pointer, base.clone(), child)));
        }
        resources
    }

    fn register(&mut self, schema: &Object, at: &Pointer, base: String, draft: Draft) -> String {
        let key = if draft == Draft::Four { "id" } else { "$id" };
        let shadowed = draft <= Draft::Seven && schema.contains_key("$ref");
        let mut base = base;
        if let Some(id) = schema
            .get(key)
            .and_then(Value::as_str)
            .filter(|_| !shadowed)
        {
            match id.strip_prefix('#') {
                Some("") => {}
                Some(anchor) => {
                    self.anchors
                        .insert((base.clone(), anchor.to_owned()), at.clone());
                }
                None => {
                    if let Some((uri, _)) = absolute(&base, id) {
                        self.identified.insert(uri.clone(), at.clone());
                        self.bases.insert(at.clone(), uri.clone());
                        base = uri;
                    }
                }
            }
        }
        for key in ["$anchor", "$dynamicAnchor"] {
            if let Some(anchor) = schema.get(key).and_then(Value::as_str) {
                self.anchors
                    .insert((base.clone(), anchor.to_owned()), at.clone());
                if key == "$dynamicAnchor" {
                    *self.dynamic.entry(anchor.to_owned()).or_default() += 1;
                }
            }
        }
        if schema.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
            *self.dynamic.entry(String::new()).or_default() += 1;
        }
        base
    }

    /// The place a reference written at `from` names, if it is in this document.
    pub(super) fn resolve(&self, from: &Pointer, reference: &str) -> Option<(Pointer, &'s Value)> {
        let (uri, fragment) = absolute(self.base(from), reference)?;
        let resource = self.identified.get(&uri)?;
        let fragment = percent_decoded(&fragment)?;
        let pointer = if fragment.is_empty() || fragment.starts_with('/') {
            resource.join(&Pointer::from(fragment.as_str()))
        } else {
            self.anchors.get(&(uri, fragment))?.clone()
        };
        let target = pointer.find(self.root)?;
        Some((pointer, target))
    }

    /// Whether a dynamic reference to the anchor can only mean one place.
    pub(super) fn is_static(&self, anchor: &str) -> bool {
        let documents = self.identified.len() <= 2;
        documents && self.dynamic.get(anchor).copied().unwrap_or_default() <= 1
    }

    fn base(&self, at: &Pointer) -> &str {
        let mut at = at.clone();
        loop {
            if let Some(base) = self.bases.get(&at) {
                return base;
            }
            if at == Pointer::root() {
                return NO_BASE;
            }
            at.pop();
        }
    }
}

/// Whether any schema inside refers to another.
fn refers(root: &Value) -> bool {
    let mut open = vec![root];
    while let Some(schema) = open.pop() {
        if let Value::Object(members) = schema {
            let references = ["$ref", "$dynamicRef", "$recursiveRef"];
            if references
                .iter()
                .any(|keyword| members.contains_key(*keyword))
            {
                return true;
            }
            open.extend(children(members));
        }
    }
    false
}

/// A reference made absolute, with its fragment apart.
fn absolute(base: &str, reference: &str) -> Option<(String, String)> {
    let base = Uri::parse(base).ok()?;
    let reference = UriRef::parse(reference).ok()?;
    let mut resolved = reference.resolve_against(&base).ok()?;
    let fragment = resolved
        .fragment()
        .map_or_else(String::new, |fragment| fragment.as_str().to_owned());
    resolved.set_fragment(None);
    Some((resolved.into_string(), fragment))
}
