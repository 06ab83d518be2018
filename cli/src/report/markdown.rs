use super::FindingReport;
use crate::style::escape_controls;

pub(super) fn render(report: &FindingReport) -> String {
    let mut text = String::from("| check | rejected | tools | checked |\n|---|---|---|---|\n");
    for check in &report.checks {
        let since = check.basis.as_ref().map_or("", |basis| &basis.verified_on);
        text.push_str(&format!(
            "| {} | {} | {} | {since} |\n",
            check.name, check.rejected, check.tools
        ));
    }
    if report.findings.is_empty() {
        return text;
    }
    text.push_str("\n| place | level | rule | tool | finding | fix |\n|---|---|---|---|---|---|\n");
    for finding in &report.findings {
        text.push_str(&format!(
            "| {} | {} | {} {} | {} | {} (at {}) | {} |\n",
            escape_cell(&finding.place()),
            finding.level.as_str(),
            finding.check,
            finding.rule,
            escape_cell(&finding.tool),
            escape_cell(&finding.message),
            escape_cell(&finding.pointer),
            if finding.fixable { "yes" } else { "no" },
        ));
    }
    text
}

/// Text that stays in its cell and is not taken for markup.
pub(crate) fn escape_cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for c in escape_controls(text).chars() {
        if matches!(
            c,
            '|' | '\\' | '<' | '>' | '[' | ']' | '*' | '_' | '`' | '#' | '&'
        ) {
            cell.push('\\');
        }
        cell.push(c);
    }
    cell
}
