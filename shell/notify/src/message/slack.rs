use serde_json::{Value, json};

use super::{headline, link, summary_fields};
use crate::notice::Notice;
use crate::sanitize::{sanitize_lines, slack};

/// Blocks of plain text, and a fallback text for clients that do not show blocks. Only the link is markup.
pub(super) fn body(notice: &Notice) -> Value {
    let plain = |text: String| json!({"type": "plain_text", "text": text, "emoji": false});
    let fields: Vec<Value> = summary_fields(notice, slack)
        .into_iter()
        .map(|(name, value)| plain(format!("{name}: {value}")))
        .collect();
    let mut blocks = vec![
        json!({"type": "header", "text": plain(headline(notice, 150, slack))}),
        json!({"type": "section", "fields": fields}),
    ];
    // Slack rejects an empty text.
    if !notice.text.is_empty() {
        let text = sanitize_lines(&notice.text, 3000, slack);
        blocks.push(json!({"type": "section", "text": plain(text)}));
    }
    if let Some(url) = link(notice) {
        let url = url.replace('&', "&amp;");
        let read_on = json!({"type": "mrkdwn", "text": format!("<{url}|Read on>")});
        blocks.push(json!({"type": "context", "elements": [read_on]}));
    }
    json!({
        "text": headline(notice, 400, slack),
        "mrkdwn": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": blocks,
    })
}
