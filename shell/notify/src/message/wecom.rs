use serde_json::{Value, json};

use super::render_markdown;
use crate::notice::Notice;

/// The maximum number of bytes that WeCom accepts.
const MAX_TEXT_BYTES: usize = 4096;

/// Markdown.
pub(super) fn body(notice: &Notice) -> Value {
    json!({"msgtype": "markdown", "markdown": {"content": render_markdown(notice, MAX_TEXT_BYTES, "")}})
}

#[cfg(test)]
mod tests {
    use toolwarden_model::Severity;

    use super::*;
    use crate::NoticeKind;

    #[test]
    fn the_largest_notice_fits() {
        let long = "*\u{202e}<é\n".repeat(5_000);
        let notice = Notice {
            id: "n".to_owned(),
            kind: NoticeKind::Finding,
            server: long.clone(),
            tool: Some(long.clone()),
            severity: Severity::Breaking,
            title: long.clone(),
            text: long,
            at: "2026-11-16T10:00:00Z".parse().unwrap(),
            details: Value::Null,
            link: Some(format!("https://warden.example/{}", "a".repeat(300))),
        };
        let body = body(&notice);
        let content = body["markdown"]["content"].as_str().unwrap();
        assert!(
            (3_000..=MAX_TEXT_BYTES).contains(&content.len()),
            "{}",
            content.len()
        );
    }
}
