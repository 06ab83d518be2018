//! A record as a line of RFC 4180.

use std::borrow::Cow;

use toolwarden_store::RecordRow;

use super::record_json::time;
use super::record_lines::reason;

pub(super) const HEADER: &str =
    "seq,at,kind,principal,tool,session,code,allowed,reason,body,hash\r\n";

pub(super) fn line(row: &RecordRow<'_>) -> String {
    let allowed = row.allowed.map(|it| if it { "true" } else { "false" });
    let cells = [
        row.seq.to_string(),
        time(row.at_ms),
        cell(row.kind),
        cell(row.principal.unwrap_or_default()),
        cell(row.tool.unwrap_or_default()),
        cell(row.session.unwrap_or_default()),
        cell(row.code),
        cell(allowed.unwrap_or_default()),
        cell(&reason(row)),
        cell(row.body),
        row.hash.to_string(),
    ];
    cells.join(",") + "\r\n"
}

/// A text that no reader takes for several cells, and no spreadsheet for a formula.
///
/// A quotation mark is put before what a spreadsheet might compute, and before a leading quotation
/// mark, so that taking one away always gives what was there.
///
/// Control characters are written as escapes: a line of the file begins with nothing that a terminal or a CI
/// runner acts upon.
fn cell(text: &str) -> String {
    let text = escaped(text);
    let computed = [
        '=', '+', '-', '@', '\t', '\r', '\n', '\'', '＝', '＋', '－', '＠',
    ];
    let mark = if text.starts_with(computed) { "'" } else { "" };
    if text.contains([',', '"']) {
        return format!("\"{mark}{}\"", text.replace('"', "\"\""));
    }
    format!("{mark}{text}")
}

fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn cells_are_quoted_and_never_computed() {
        for (text, expected) in [
            ("", ""),
            ("plain text", "plain text"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\n::lines", "two\\n::lines"),
            ("\u{1b}[31m", "\\u{1b}[31m"),
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("-2+3,\"x\"", "\"'-2+3,\"\"x\"\"\""),
            ("\tx", "\\tx"),
            ("＝1", "'＝1"),
            ("'quoted", "''quoted"),
            ("a=b", "a=b"),
        ] {
            assert_eq!(cell(text), expected, "{text}");
        }
    }
}
