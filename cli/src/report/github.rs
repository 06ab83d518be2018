use super::{FindingLevel, FindingOrigin, FindingReport};

pub(super) fn render(report: &FindingReport) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let command = match finding.level {
            FindingLevel::Note => "notice",
            level => level.as_str(),
        };
        // Without a file an annotation belongs to the run.
        let place = match finding.detail.origin {
            FindingOrigin::File => format!(
                "file={},line={},col={},",
                property(&finding.file),
                finding.line,
                finding.column
            ),
            FindingOrigin::Elsewhere => String::new(),
        };
        text.push_str(&format!(
            "::{command} {place}title={}::{}\n",
            property(&format!("{} {}", finding.check, finding.rule)),
            data(&format!(
                "{}: {} (at {})",
                finding.tool, finding.message, finding.pointer
            )),
        ));
    }
    text
}

/// Text that cannot end a command or start another, nor act on a terminal that shows the log.
fn data(text: &str) -> String {
    let lines = text.split('\n').map(crate::style::escape_controls);
    let lines: Vec<String> = lines.map(|line| line.replace('%', "%25")).collect();
    lines.join("%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
