use toolwarden_model::Tool;
use toolwarden_model::json::Pointer;

use super::names::{parameter_names, tool_name};
use crate::dialect::facts::DialectFacts;
use crate::dialect::lint::{DialectFinding, DialectLevel};

/// What is wrong with a tool outside its schemas, and with names in them.
pub(in crate::dialect) fn tool_findings(tool: &Tool, facts: &DialectFacts) -> Vec<DialectFinding> {
    let mut findings = if tool.name.is_empty() {
        Vec::new()
    } else {
        tool_name(&tool.name, facts)
    };
    let mut report = |rule, pointer: Pointer, message: &'static str| {
        findings.push(DialectFinding {
            rule,
            level: DialectLevel::Rejected,
            pointer,
            message: message.into(),
            fixable: false,
        });
    };
    if tool.name.is_empty() {
        report(
            "name",
            Pointer::of(["name"]),
            "the tool has no name to be called by",
        );
    }
    if facts.nonempty_description && !tool.absent.description && tool.description.is_empty() {
        report(
            "description",
            Pointer::of(["description"]),
            "an empty description is not accepted",
        );
    }
    if facts.inputs_required && tool.absent.inputs {
        report(
            "inputs",
            Pointer::of(["inputs"]),
            "an input schema is required",
        );
    }
    findings.extend(parameter_names(&tool.inputs, facts));
    findings
}
