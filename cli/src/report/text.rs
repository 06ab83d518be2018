use super::{FindingLevel, FindingReport};
use crate::style::{self, escape_controls};

pub(super) fn render(report: &FindingReport) -> String {
    let (place, dim) = (style::LOCATION, style::DIM);
    let mut text = String::new();
    for finding in &report.findings {
        let level = if finding.level == FindingLevel::Error {
            style::ERROR
        } else {
            style::WARNING
        };
        text.push_str(&format!(
            "{place}{}{place:#}: {level}{}[{}]{level:#} {}: {} {dim}({}){dim:#}\n",
            escape_controls(&finding.place()),
            finding.level.as_str(),
            finding.rule,
            escape_controls(&finding.tool),
            escape_controls(&finding.message),
            finding.check,
        ));
        let fix = if finding.fixable {
            "  --fix rewrites it"
        } else {
            ""
        };
        text.push_str(&format!(
            "  {dim}at {}{fix}{dim:#}\n",
            escape_controls(&finding.pointer)
        ));
    }
    if !report.findings.is_empty() {
        text.push('\n');
    }
    for check in &report.checks {
        let style = if check.rejected == 0 {
            style::SUCCESS
        } else {
            style::ERROR
        };
        let tools = if check.tools == 1 { "tool" } else { "tools" };
        let since = match &check.basis {
            Some(basis) => format!(" {dim}(checked {}){dim:#}", basis.verified_on),
            None => String::new(),
        };
        text.push_str(&format!(
            "{style}{}{style:#}: {} of {} {tools} {}{since}\n",
            check.name, check.rejected, check.tools, check.outcome
        ));
    }
    text
}
