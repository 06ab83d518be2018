use std::borrow::Cow;

use serde_json::Value;
use toolwarden_model::Tool;
use toolwarden_model::json::{Object, Pointer};

use super::Dialect;
use super::facts::Facts;
use super::node::{Node, Violation};
use super::rules;
use crate::emit::{Kind, Severity};
use crate::schema::subschemas;

/// Something in a tool that a dialect does not take as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's word.
    pub rule: &'static str,
    /// What the target does about it.
    pub level: Level,
    /// Where in the canonical form.
    pub pointer: Pointer,
    /// What is wrong, in words.
    pub message: Cow<'static, str>,
    /// Whether a rewrite that keeps the meaning is known.
    pub fixable: bool,
}

/// What a target does about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It takes the keyword and does not honour it.
    Ignored,
    /// It rejects the request.
    Rejected,
}

impl Level {
    /// The word in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Rejected => "rejected",
        }
    }

    /// What becomes of something, in words.
    pub(super) fn said_of(self, what: &str) -> String {
        match self {
            Self::Ignored => format!("{what} is taken and not honoured"),
            Self::Rejected => format!("{what} is not accepted"),
        }
    }
}

/// Everything in a tool that a dialect does not take as it is, in document order.
#[must_use]
pub fn lint(tool: &Tool, dialect: Dialect) -> Vec<Finding> {
    lint_by(tool, dialect.facts())
}

/// Everything in a tool that a target of which these facts are known does not take as it is, in
/// document order.
#[must_use]
pub fn lint_by(tool: &Tool, facts: &Facts) -> Vec<Finding> {
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
    facts: &'s Facts,
    root: &'s Object,
}

impl Walk<'_> {
    fn visit(
        &self,
        schema: &Object,
        place: &Pointer,
        is_root: bool,
        in_union: bool,
        findings: &mut Vec<Finding>,
    ) {
        let node = Node {
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

/// Whether a schema stands directly in a union of the schema around it.
pub(super) fn is_branch(at: &Pointer) -> bool {
    ["/anyOf/", "/oneOf/"]
        .iter()
        .any(|prefix| at.as_str().starts_with(prefix))
}

fn finding(violation: Violation, place: &Pointer) -> Finding {
    let Violation {
        rule,
        level,
        at,
        message,
        remedy,
    } = violation;
    let fixable = remedy.is_some_and(|remedy| remedy.kind != Kind::Loss(Severity::Semantic));
    Finding {
        rule,
        level,
        pointer: place.join(&at),
        message,
        fixable,
    }
}
