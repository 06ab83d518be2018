use serde::ser::{Serialize, Serializer};

use super::node::Node;
use crate::fingerprint::Fingerprint;
use crate::hints::{Hints, HintsEvidence};
use crate::security::Security;
use crate::tool::{Absent, Tool};

impl Tool {
    /// Appends the canonical JSON of what the tool says, without the definition it was read from
    /// and without its key order.
    pub fn write_canonical(&self, out: &mut String) {
        Node::Members(self.members()).write_canonical(out);
    }

    /// The fingerprint of what the tool says.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let mut text = String::new();
        self.write_canonical(&mut text);
        Fingerprint::of_canonical(&text)
    }

    /// The members of the document that carry meaning, in document order.
    fn members(&self) -> Vec<(&str, Node<'_>)> {
        let mut members = vec![
            ("name", Node::Text(&self.name)),
            ("version", Node::Text(&self.version)),
            ("description", Node::Text(&self.description)),
            ("capabilities", hints_node(&self.hints)),
            ("inputs", Node::Object(&self.inputs)),
            ("outputs", Node::Object(&self.outputs)),
            (
                "security",
                self.security.as_ref().map_or(Node::Null, security_node),
            ),
        ];
        if let Some(title) = &self.title {
            members.push(("title", Node::Text(title)));
        }
        if let Some(annotations) = &self.annotations {
            members.push(("annotations", Node::Object(annotations)));
        }
        if let Some(strict) = self.strict {
            members.push(("strict", Node::Flag(strict)));
        }
        if !self.examples.is_empty() {
            members.push(("examples", Node::Items(&self.examples)));
        }
        if let Some(dialect) = self.dialect() {
            members.push(("dialect", Node::Text(dialect)));
        }
        members.push(("capability_sources", evidence_node(&self.evidence)));
        if self.absent != Absent::default() {
            members.push(("absent", Node::Words(self.absent.words().collect())));
        }
        if !self.extensions.is_empty() {
            let extensions = self.extensions.iter();
            let extensions = extensions.map(|(format, keys)| (format.id(), Node::Object(keys)));
            members.push(("extensions", Node::Members(extensions.collect())));
        }
        members.push(("source_format", Node::Text(self.format.family().as_str())));
        members.push(("format", Node::Text(self.format.id())));
        members
    }
}

impl Serialize for Tool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = self.members();
        if !self.layout.is_empty() {
            let layout = self.layout.iter().map(|(pointer, keys)| {
                (
                    pointer.as_str(),
                    Node::Words(keys.iter().map(String::as_str).collect()),
                )
            });
            members.push(("layout", Node::Members(layout.collect())));
        }
        let definition = self.definition.as_ref();
        let definition =
            definition.map_or_else(|| Node::Members(Vec::new()), |it| Node::Owned(it.value()));
        members.push(("original_definition", definition));
        Node::Members(members).serialize(serializer)
    }
}

impl Serialize for Hints {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        hints_node(self).serialize(serializer)
    }
}

impl Serialize for Security {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        security_node(self).serialize(serializer)
    }
}

impl Absent {
    /// The names of the parts left out.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        [
            (self.name, "name"),
            (self.description, "description"),
            (self.inputs, "inputs"),
        ]
        .into_iter()
        .filter_map(|(absent, word)| absent.then_some(word))
    }
}

fn hints_node(hints: &Hints) -> Node<'_> {
    Node::Members(vec![
        ("action", Node::Text(&hints.action)),
        ("domain", Node::Text(hints.domain.as_str())),
        ("side_effects", Node::Flag(hints.side_effects)),
        ("idempotent", Node::Flag(hints.idempotent)),
        ("cost_estimate", Node::Text(hints.cost_estimate.as_str())),
    ])
}

fn evidence_node(evidence: &HintsEvidence) -> Node<'static> {
    Node::Members(vec![
        ("action", Node::Text(evidence.action.as_str())),
        ("domain", Node::Text(evidence.domain.as_str())),
        ("side_effects", Node::Text(evidence.side_effects.as_str())),
        ("idempotent", Node::Text(evidence.idempotent.as_str())),
        ("cost_estimate", Node::Text(evidence.cost_estimate.as_str())),
    ])
}

fn security_node(security: &Security) -> Node<'_> {
    let permissions = security
        .required_permissions
        .iter()
        .map(String::as_str)
        .collect();
    Node::Members(vec![
        ("required_permissions", Node::Words(permissions)),
        (
            "data_classification",
            Node::Text(security.data_classification.as_str()),
        ),
        ("pii_handling", Node::Text(security.pii_handling.as_str())),
    ])
}
