use std::collections::BTreeMap;

use fluent_uri::{Uri, UriRef};
use serde_json::Value;
use toolwarden_model::json::{Object, Pointer, percent_decode};
use toolwarden_model::keywords::{children, subschemas};

use super::draft::Draft;

/// The base of a document that names none.
const NO_BASE: &str = "json-schema:///";

/// A place in one of the documents that references can point to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SchemaLocation {
    /// The document: the one that is read, then published metaschemas.
    pub(crate) document: usize,
    pub(crate) pointer: Pointer,
}

impl SchemaLocation {
    /// A place in the document that is read.
    pub(crate) const fn here(pointer: Pointer) -> Self {
        Self {
            document: 0,
            pointer,
        }
    }
}

/// The targets of dynamic references: each name maps to the outermost schema with that anchor.
pub(crate) type DynamicScope = BTreeMap<String, SchemaLocation>;

/// Every place that a reference of a document can name.
#[derive(Debug)]
pub(crate) struct Resources<'s> {
    documents: Vec<(&'s Value, Draft)>,
    /// The place of each identified schema.
    identified: BTreeMap<String, SchemaLocation>,
    /// The place of each anchor, under the identifier of its schema.
    anchors: BTreeMap<(String, String), SchemaLocation>,
    /// The identifier each identified schema resolves references against.
    bases: BTreeMap<SchemaLocation, String>,
    /// The place of each dynamic anchor, under the identifier of its schema. `$recursiveAnchor` is one
    /// without a name.
    dynamic: BTreeMap<String, DynamicScope>,
}

impl<'s> Resources<'s> {
    pub(crate) fn of(root: &'s Value, draft: Draft) -> Self {
        let start = SchemaLocation::here(Pointer::root());
        let mut resources = Self {
            documents: vec![(root, draft)],
            identified: BTreeMap::from([(NO_BASE.to_owned(), start.clone())]),
            anchors: BTreeMap::new(),
            bases: BTreeMap::from([(start, NO_BASE.to_owned())]),
            dynamic: BTreeMap::new(),
        };
        let Some(refers) = reference_targets(root) else {
            return resources;
        };
        resources.register_document(0, NO_BASE);
        if refers == ReferenceTargets::Metaschemas {
            for (uri, schema) in metaschemas() {
                let uri = uri.trim_end_matches('#');
                resources.documents.push((schema, Draft::of(schema)));
                let document = resources.documents.len() - 1;
                let start = SchemaLocation {
                    document,
                    pointer: Pointer::root(),
                };
                resources.bases.insert(start, uri.to_owned());
                resources.register_document(document, uri);
            }
        }
        resources
    }

    /// The document itself.
    pub(crate) fn root(&self) -> &'s Value {
        self.documents
            .first()
            .map_or(&Value::Null, |(root, _)| *root)
    }

    /// The draft of a document.
    pub(crate) fn draft(&self, document: usize) -> Draft {
        let found = self.documents.get(document);
        found.map_or(Draft::Draft2020, |(_, draft)| *draft)
    }

    fn register_document(&mut self, document: usize, base: &str) {
        let Some((root, draft)) = self.documents.get(document).copied() else {
            return;
        };
        let mut open = vec![(Pointer::root(), base.to_owned(), root)];
        while let Some((pointer, base, schema)) = open.pop() {
            let Value::Object(members) = schema else {
                continue;
            };
            let children: Vec<_> = subschemas(members, &pointer);
            let place = SchemaLocation { document, pointer };
            let base = self.register(members, &place, base, draft);
            let children = children.into_iter();
            open.extend(children.map(|(pointer, child)| (pointer, base.clone(), child)));
        }
    }

    fn register(
        &mut self,
        schema: &Object,
        at: &SchemaLocation,
        base: String,
        draft: Draft,
    ) -> String {
        let key = if draft == Draft::Draft4 { "id" } else { "$id" };
        let shadowed = draft <= Draft::Draft7 && schema.contains_key("$ref");
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
                        // A document may carry a metaschema of its own.
                        self.identified
                            .entry(uri.clone())
                            .or_insert_with(|| at.clone());
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
                    let scope = self.dynamic.entry(base.clone()).or_default();
                    scope.insert(anchor.to_owned(), at.clone());
                }
            }
        }
        if schema.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
            let scope = self.dynamic.entry(base.clone()).or_default();
            scope.insert(String::new(), at.clone());
        }
        base
    }

    /// The place a reference written at `from` names, if it is in a document that is known.
    pub(crate) fn resolve(
        &self,
        from: &SchemaLocation,
        reference: &str,
    ) -> Option<(SchemaLocation, &'s Value)> {
        let (uri, fragment) = absolute(self.base(from), reference)?;
        let resource = self.identified.get(&uri)?;
        let fragment = percent_decode(&fragment)?;
        let place = if fragment.is_empty() || fragment.starts_with('/') {
            SchemaLocation {
                document: resource.document,
                pointer: resource.pointer.join(&Pointer::from(fragment.as_str())),
            }
        } else {
            self.anchors.get(&(uri, fragment))?.clone()
        };
        let target = self.find(&place)?;
        Some((place, target))
    }

    /// The place a dynamic reference to an anchor names: what it would name as any other reference,
    /// unless that is a dynamic anchor which a schema further out has too.
    pub(crate) fn resolve_dynamic(
        &self,
        from: &SchemaLocation,
        reference: &str,
        anchor: &str,
        scope: &DynamicScope,
    ) -> Option<(SchemaLocation, &'s Value)> {
        let (place, target) = self.resolve(from, reference)?;
        let own = self.dynamic.get(self.base(&place));
        if own.and_then(|own| own.get(anchor)) != Some(&place) {
            return Some((place, target));
        }
        let outermost = scope.get(anchor).cloned().unwrap_or(place);
        let target = self.find(&outermost)?;
        Some((outermost, target))
    }

    /// The scope inside the schema a place belongs to, given the scope around it: outer ones come
    /// first.
    pub(crate) fn scope_at(&self, at: &SchemaLocation, around: &DynamicScope) -> DynamicScope {
        let mut scope = around.clone();
        for (anchor, place) in self.dynamic.get(self.base(at)).into_iter().flatten() {
            scope.entry(anchor.clone()).or_insert_with(|| place.clone());
        }
        scope
    }

    /// Whether the target of any reference may depend on the path to it.
    pub(crate) fn has_dynamic_anchors(&self) -> bool {
        !self.dynamic.is_empty()
    }

    /// Whether a schema has an identifier of its own.
    pub(crate) fn is_identified(&self, at: &SchemaLocation) -> bool {
        self.bases.contains_key(at)
    }

    fn find(&self, place: &SchemaLocation) -> Option<&'s Value> {
        let (root, _) = self.documents.get(place.document)?;
        place.pointer.find(root)
    }

    fn base(&self, at: &SchemaLocation) -> &str {
        let mut at = at.clone();
        loop {
            if let Some(base) = self.bases.get(&at) {
                return base;
            }
            if at.pointer == Pointer::root() {
                return NO_BASE;
            }
            at.pointer.pop();
        }
    }
}

/// Which documents the references of a document point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReferenceTargets {
    /// Only to the document itself, as far as can be determined.
    Local,
    /// Also to published metaschemas.
    Metaschemas,
}

/// Whether any schema inside refers to another, and where to.
fn reference_targets(root: &Value) -> Option<ReferenceTargets> {
    let mut open = vec![root];
    let mut found = None;
    while let Some(schema) = open.pop() {
        if let Value::Object(members) = schema {
            for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
                match members.get(keyword).and_then(Value::as_str) {
                    Some(reference) if reference.contains("//json-schema.org/") => {
                        return Some(ReferenceTargets::Metaschemas);
                    }
                    Some(_) => found = Some(ReferenceTargets::Local),
                    None => {}
                }
            }
            open.extend(children(members));
        }
    }
    found
}

/// The published metaschemas with their identifiers.
fn metaschemas() -> [(&'static str, &'static Value); 18] {
    use referencing::meta;
    [
        ("http://json-schema.org/draft-04/schema", &meta::DRAFT4),
        ("http://json-schema.org/draft-06/schema", &meta::DRAFT6),
        ("http://json-schema.org/draft-07/schema", &meta::DRAFT7),
        (Draft::Draft2019.uri(), &meta::DRAFT201909),
        (
            "https://json-schema.org/draft/2019-09/meta/applicator",
            &meta::DRAFT201909_APPLICATOR,
        ),
        (
            "https://json-schema.org/draft/2019-09/meta/content",
            &meta::DRAFT201909_CONTENT,
        ),
        (
            "https://json-schema.org/draft/2019-09/meta/core",
            &meta::DRAFT201909_CORE,
        ),
        (
            "https://json-schema.org/draft/2019-09/meta/format",
            &meta::DRAFT201909_FORMAT,
        ),
        (
            "https://json-schema.org/draft/2019-09/meta/meta-data",
            &meta::DRAFT201909_META_DATA,
        ),
        (
            "https://json-schema.org/draft/2019-09/meta/validation",
            &meta::DRAFT201909_VALIDATION,
        ),
        (Draft::Draft2020.uri(), &meta::DRAFT202012),
        (
            "https://json-schema.org/draft/2020-12/meta/core",
            &meta::DRAFT202012_CORE,
        ),
        (
            "https://json-schema.org/draft/2020-12/meta/applicator",
            &meta::DRAFT202012_APPLICATOR,
        ),
        (
            "https://json-schema.org/draft/2020-12/meta/unevaluated",
            &meta::DRAFT202012_UNEVALUATED,
        ),
        (
            "https://json-schema.org/draft/2020-12/meta/validation",
            &meta::DRAFT202012_VALIDATION,
        ),
        (
            "https://json-schema.org/draft/2020-12/meta/meta-data",
            &meta::DRAFT202012_META_DATA,
        ),
        (
            "https://json-schema.org/draft/2020-12/meta/format-annotation",
            &meta::DRAFT202012_FORMAT_ANNOTATION,
        ),
        (
            "https://json-schema.org/draft/2020-12/meta/content",
            &meta::DRAFT202012_CONTENT,
        ),
    ]
}

/// An absolute reference, split from its fragment.
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
