use serde_json::Value;
use toolwarden_model::Fingerprint;
use toolwarden_model::json::{Pointer, to_canonical_string};
use toolwarden_schema::{CANONICAL_VERSION, canonical_text};

use crate::annotations::with_defaults;
use crate::facet::{Facet, ObservedDefinition};

/// The fingerprints of a definition, facet by facet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FacetFingerprints {
    /// The whole definition.
    pub whole: Fingerprint,
    /// Every string with its place.
    pub text: Fingerprint,
    /// Each facet; an absent facet has the fingerprint of its absence.
    pub facets: [(Facet, Fingerprint); 9],
    /// What the input schema means.
    pub input: Option<SemanticFingerprint>,
    /// What the output schema means.
    pub output: Option<SemanticFingerprint>,
}

/// The fingerprint of a schema's meaning, independent of its wording.
///
/// It depends on how schemas are normalized. If the versions differ, the newer version fingerprints
/// both definitions again instead of comparing the stored values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemanticFingerprint {
    /// The version of the normal form.
    pub version: u32,
    /// The fingerprint.
    pub fingerprint: Fingerprint,
}

impl FacetFingerprints {
    /// The fingerprints of a definition.
    #[must_use]
    pub fn of(observed: &ObservedDefinition<'_>) -> Self {
        let whole = to_canonical_string(observed.definition);
        let facets = Facet::ALL.map(|facet| {
            let text = facet_text(observed, facet);
            let fingerprint = Fingerprint::tagged("toolwarden/facet/v1", [facet.as_str(), &text]);
            (facet, fingerprint)
        });
        let semantic = |facet| observed.facet(facet).and_then(SemanticFingerprint::of);
        Self {
            whole: Fingerprint::tagged("toolwarden/definition/v1", [whole.as_str()]),
            text: text_fingerprint(observed.definition),
            facets,
            input: semantic(Facet::Input),
            output: semantic(Facet::Output),
        }
    }

    /// The fingerprint of a facet.
    #[must_use]
    pub fn facet(&self, facet: Facet) -> Option<Fingerprint> {
        let mut facets = self.facets.iter();
        facets.find(|(known, _)| *known == facet).map(|(_, it)| *it)
    }
}

impl SemanticFingerprint {
    fn of(schema: &Value) -> Option<Self> {
        let text = canonical_text(schema)?;
        let version = CANONICAL_VERSION.to_string();
        Some(Self {
            version: CANONICAL_VERSION,
            fingerprint: Fingerprint::tagged("toolwarden/semantic", [version.as_str(), &text]),
        })
    }
}

fn facet_text(observed: &ObservedDefinition<'_>, facet: Facet) -> String {
    match facet {
        Facet::Annotations => {
            to_canonical_string(&Value::Object(with_defaults(observed.facet(facet))))
        }
        Facet::Other => to_canonical_string(&rest(observed)),
        _ => observed
            .facet(facet)
            .map_or_else(String::new, to_canonical_string),
    }
}

/// The definition without the members that have their own facet.
fn rest(observed: &ObservedDefinition<'_>) -> Value {
    let mut rest = observed.definition.clone();
    for facet in Facet::ALL {
        let Some(place) = observed.layout.place(facet) else {
            continue;
        };
        let mut parent = place.clone();
        parent.pop();
        let last = place.segments().last().unwrap_or_default();
        if let Some(Value::Object(members)) = rest.pointer_mut(parent.as_str()) {
            members.shift_remove(&last);
        }
    }
    rest
}

fn text_fingerprint(definition: &Value) -> Fingerprint {
    let mut strings: Vec<(Pointer, &str)> = Vec::new();
    let mut open = vec![(Pointer::root(), definition)];
    while let Some((at, value)) = open.pop() {
        match value {
            Value::String(text) => strings.push((at, text)),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                open.extend(items.map(|(index, item)| (at.index(index), item)));
            }
            Value::Object(members) => {
                open.extend(members.iter().map(|(key, member)| (at.child(key), member)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    strings.sort();
    let parts = strings.iter().flat_map(|(at, text)| [at.as_str(), text]);
    Fingerprint::tagged("toolwarden/text/v1", parts)
}
