use super::Report;
use crate::ci_escape::in_json;

pub(super) fn render(report: &Report) -> String {
    in_json(serde_json::to_string_pretty(report).unwrap_or_default()) + "\n"
}
