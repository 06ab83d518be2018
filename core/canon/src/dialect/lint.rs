use std::borrow::Cow;

use serde_json::Value;
use toolwarden_model::Tool;
use toolwarden_model::json::{Object, Pointer};

use super::Dialect;
use super::facts::DialectFacts;
use super::rules;
use super::violation::{SchemaContext, Violation};
use crate::edit::{EditKind, LossKind};
use crate::schema::subschemas;

/// Something in a tool that a dialect does not accept as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialectFinding {
    /// The rule's id.
    pub rule: &'static str,
    /// What the target does about it.
    pub level: DialectLevel,
    /// Where in the canonical form.
    pub pointer: Pointer,
    /// What is wrong, in words.
    pub message: Cow<'static, str>,
    /// Whether a rewrite that keeps the meaning is known.
    pub fixable: bool,
}

/// What a target does about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DialectLevel {
    /// The target accepts the keyword and does not honour it.
    Ignored,
    /// The target rejects the request.
    Rejected,
}

impl DialectLevel {
    /// The word in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Rejected => "rejected",
        }
    }

    /// Describes how the target handles something.
    pub(super) fn describe(self, what: &str) -> String {
        match self {
            Self::Ignored => format!("{what} is accepted but not honoured"),
            Self::Rejected => format!("{what} is not accepted"),
        }
    }
}

/// Everything in a tool that a dialect does not accept unchanged, in document order.
#[must_use]
pub fn lint(tool: &Tool, dialect: Dialect) -> Vec<DialectFinding> {
    lint_with_facts(tool, dialect.facts())
}

/// Everything in a tool that a target with these facts does not accept unchanged, in document
/// order.
#[must_use]
pub fn lint_with_facts(tool: &Tool, facts: &DialectFacts) -> Vec<DialectFinding> {
    let mut findings = Vec::new();
    if tool.format.is_hosted() {
        return findings;
    }
    findings.extend(rules::tool_findings(tool, facts));
    if !tool.absent.inputs {
        let place = Pointer::of(["inputs"]);
        let walk = Walk {
            facts,
            root: &tool.inputs,
        };
        walk.visit(&tool.inputs, &place, true, false, &mut findings);
        findings.extend(rules::size_findings(&tool.inputs, &place, facts));
    }
    findings
}

struct Walk<'s> {
    facts: &'s DialectFacts,
    root: &'s Object,
}

impl Walk<'_> {
    fn visit(
        &self,
        schema: &Object,
        place: &Pointer,
        is_root: bool,
        in_union: bool,
        findings: &mut Vec<DialectFinding>,
    ) {
        let node = SchemaContext {
            facts: self.facts,
            schema,
            root: self.root,
            is_root,
            in_union,
        };
        findings.extend(
            rules::violations(node)
                .into_iter()
                .map(|violation| finding(violation, place)),
        );
        for (at, child) in subschemas(schema, &Pointer::root()) {
            let place = place.join(&at);
            match child {
                Value::Object(child) => self.visit(child, &place, false, is_branch(&at), findings),
                other => findings
                    .extend(rules::boolean_schema(self.facts, other).map(|it| finding(it, &place))),
            }
        }
    }
}

/// Whether a schema is a direct branch of a union in its parent schema.
pub(super) fn is_branch(at: &Pointer) -> bool {
    ["/anyOf/", "/oneOf/"]
        .iter()
        .any(|prefix| at.as_str().starts_with(prefix))
}

fn finding(violation: Violation, place: &Pointer) -> DialectFinding {
    let Violation {
        rule,
        level,
        at,
        message,
        remedy,
    } = violation;
    let fixable = remedy.is_some_and(|remedy| remedy.kind != EditKind::Loss(LossKind::Semantic));
    DialectFinding {
        rule,
        level,
        pointer: place.join(&at),
        message,
        fixable,
    }
}
