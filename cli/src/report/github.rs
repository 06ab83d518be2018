use super::{Level, Report};

pub(super) fn render(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let command = match finding.level {
            Level::Note => "notice",
            level => level.word(),
        };
        text.push_str(&format!(
            "::{command} file={},line={},col={},title={}::{}\n",
            property(&finding.file),
            finding.line,
            finding.column,
            property(&format!("{} {}", finding.check, finding.rule)),
            data(&format!(
                "{}: {} (at {})",
                finding.tool, finding.message, finding.pointer
            )),
        ));
    }
    text
}

/// Text that cannot end a command or start another.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
