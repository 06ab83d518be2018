use serde::ser::{Serialize, Serializer};

use super::document_node::DocumentNode;
use crate::fingerprint::Fingerprint;
use crate::hints::{Hints, HintsEvidence};
use crate::json::{Object, Value, write_canonical_text};
use crate::security::Security;
use crate::tool::{AbsentParts, Extensions, Tool};

impl Tool {
    /// The tool's own statements and nothing else: no inferred values, no defaults, no origin. Two
    /// definitions with the same contract are the same to a caller.
    #[must_use]
    pub fn contract(&self) -> Value {
        let mut members = Object::new();
        self.each_contract_member(|key, node| {
            // A node is already JSON, so this cannot fail.
            members.insert(
                key.to_owned(),
                serde_json::to_value(node).unwrap_or_default(),
            );
        });
        Value::Object(members)
    }

    /// Appends the canonical JSON of the contract.
    pub fn write_canonical(&self, out: &mut String) {
        let mut separator = '{';
        self.each_contract_member(|key, node| {
            out.push(separator);
            separator = ',';
            write_canonical_text(out, key);
            out.push(':');
            node.write_canonical(out);
        });
        out.push_str(if separator == '{' { "{}" } else { "}" });
    }

    /// The fingerprint of the contract.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let mut text = String::new();
        self.write_canonical(&mut text);
        Fingerprint::of_canonical(&text)
    }

    /// Passes the members of the contract to a callback.
    // INVARIANT: in key order, because the canonical text is written in the same order.
    fn each_contract_member<'t>(&'t self, mut see: impl FnMut(&'static str, DocumentNode<'t>)) {
        if let Some(annotations) = &self.annotations {
            see("annotations", DocumentNode::Object(annotations));
        }
        if self.evidence.states_any() {
            see("capabilities", hints_node(&self.hints));
        }
        if !self.absent.description {
            see("description", DocumentNode::Text(&self.description));
        }
        if !self.examples.is_empty() {
            see("examples", DocumentNode::Items(&self.examples));
        }
        if !self.extensions.is_empty() {
            see("extensions", extensions_node(&self.extensions));
        }
        if !self.absent.inputs {
            see("inputs", DocumentNode::Object(&self.inputs));
        }
        if !self.absent.name {
            see("name", DocumentNode::Text(&self.name));
        }
        if !self.outputs.is_empty() {
            see("outputs", DocumentNode::Object(&self.outputs));
        }
        if let Some(security) = &self.security {
            see("security", security_node(security));
        }
        if let Some(strict) = self.strict {
            see("strict", DocumentNode::Bool(strict));
        }
        if let Some(title) = &self.title {
            see("title", DocumentNode::Text(title));
        }
        if self.version != Self::DEFAULT_VERSION {
            see("version", DocumentNode::Text(&self.version));
        }
    }

    /// The members of the document that carry meaning, in document order.
    fn members(&self) -> Vec<(&str, DocumentNode<'_>)> {
        let mut members = vec![
            ("name", DocumentNode::Text(&self.name)),
            ("version", DocumentNode::Text(&self.version)),
            ("description", DocumentNode::Text(&self.description)),
            ("capabilities", hints_node(&self.hints)),
            ("inputs", DocumentNode::Object(&self.inputs)),
            ("outputs", DocumentNode::Object(&self.outputs)),
            (
                "security",
                self.security
                    .as_ref()
                    .map_or(DocumentNode::Null, security_node),
            ),
        ];
        if let Some(title) = &self.title {
            members.push(("title", DocumentNode::Text(title)));
        }
        if let Some(annotations) = &self.annotations {
            members.push(("annotations", DocumentNode::Object(annotations)));
        }
        if let Some(strict) = self.strict {
            members.push(("strict", DocumentNode::Bool(strict)));
        }
        if !self.examples.is_empty() {
            members.push(("examples", DocumentNode::Items(&self.examples)));
        }
        if let Some(dialect) = self.dialect() {
            members.push(("dialect", DocumentNode::Text(dialect)));
        }
        members.push(("capability_sources", evidence_node(&self.evidence)));
        if self.absent != AbsentParts::default() {
            members.push(("absent", DocumentNode::Words(self.absent.words().collect())));
        }
        if !self.extensions.is_empty() {
            members.push(("extensions", extensions_node(&self.extensions)));
        }
        members.push((
            "source_format",
            DocumentNode::Text(self.format.family().as_str()),
        ));
        members.push(("format", DocumentNode::Text(self.format.id())));
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
                    DocumentNode::Words(keys.iter().map(String::as_str).collect()),
                )
            });
            members.push(("layout", DocumentNode::Members(layout.collect())));
        }
        let definition = self.definition.as_ref();
        let definition = definition.map_or_else(
            || DocumentNode::Members(Vec::new()),
            |it| DocumentNode::Owned(it.value()),
        );
        members.push(("original_definition", definition));
        DocumentNode::Members(members).serialize(serializer)
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

impl AbsentParts {
    /// The names of the omitted parts.
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

fn hints_node(hints: &Hints) -> DocumentNode<'_> {
    DocumentNode::Members(vec![
        ("action", DocumentNode::Text(&hints.action)),
        ("domain", DocumentNode::Text(hints.domain.as_str())),
        ("side_effects", DocumentNode::Bool(hints.side_effects)),
        ("idempotent", DocumentNode::Bool(hints.idempotent)),
        (
            "cost_estimate",
            DocumentNode::Text(hints.cost_estimate.as_str()),
        ),
    ])
}

fn evidence_node(evidence: &HintsEvidence) -> DocumentNode<'static> {
    DocumentNode::Members(vec![
        ("action", DocumentNode::Text(evidence.action.as_str())),
        ("domain", DocumentNode::Text(evidence.domain.as_str())),
        (
            "side_effects",
            DocumentNode::Text(evidence.side_effects.as_str()),
        ),
        (
            "idempotent",
            DocumentNode::Text(evidence.idempotent.as_str()),
        ),
        (
            "cost_estimate",
            DocumentNode::Text(evidence.cost_estimate.as_str()),
        ),
    ])
}

fn extensions_node(extensions: &Extensions) -> DocumentNode<'_> {
    DocumentNode::Members(
        extensions
            .iter()
            .map(|(format, keys)| (format.id(), DocumentNode::Object(keys)))
            .collect(),
    )
}

fn security_node(security: &Security) -> DocumentNode<'_> {
    let permissions = security
        .required_permissions
        .iter()
        .map(String::as_str)
        .collect();
    DocumentNode::Members(vec![
        ("required_permissions", DocumentNode::Words(permissions)),
        (
            "data_classification",
            DocumentNode::Text(security.data_classification.as_str()),
        ),
        (
            "pii_handling",
            DocumentNode::Text(security.pii_handling.as_str()),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{parse, to_canonical_string};

    #[test]
    fn the_contract_is_written_in_canonical_form() {
        let full = parse(
            r#"{"name":"t","version":"2","description":"d","capabilities":{"action":"a"},"inputs":{"b":1,"a":2},
            "outputs":{"type":"object"},"security":{},"title":"T","annotations":{"a":1},"strict":true,
            "examples":[{}],"extensions":{"mcp":{"x":1}},"source_format":"mcp"}"#,
        );
        let bare = parse(r#"{"name":"t","absent":["name","description","inputs"]}"#);
        for document in [full, bare] {
            let tool = Tool::from_document(document.unwrap().value).unwrap();
            let mut written = String::new();
            tool.write_canonical(&mut written);
            assert_eq!(written, to_canonical_string(&tool.contract()));
        }
    }
}
