use super::FindingReport;
use crate::ci_escape::escape_json;

pub(super) fn render(report: &FindingReport) -> String {
    escape_json(serde_json::to_string_pretty(report).unwrap_or_default()) + "\n"
}
