use jiff::Timestamp;
use serde_json::{Value, json};
use toolwarden_model::Severity;

use super::{headline, link, summary_fields};
use crate::hmac;
use crate::notice::Notice;
use crate::sanitize::{plain, sanitize_lines};

/// The maximum length of the text in bytes: a whole message has at most twenty thousand.
const MAX_TEXT_BYTES: usize = 8_000;

/// A card of plain text. Its signature uses time and secret as the key, and empty data.
pub(super) fn body(secret: Option<&str>, notice: &Notice, now: Timestamp) -> Value {
    let mut body = json!({"msg_type": "interactive", "card": card(notice)});
    if let Some(secret) = secret {
        let time = now.as_second();
        let key = format!("{time}\n{secret}");
        if let Some(body) = body.as_object_mut() {
            body.insert("timestamp".to_owned(), time.to_string().into());
            body.insert(
                "sign".to_owned(),
                hmac::hmac_base64(key.as_bytes(), b"").into(),
            );
        }
    }
    body
}

fn card(notice: &Notice) -> Value {
    let text = |content: String| json!({"tag": "plain_text", "content": content});
    let fields: Vec<Value> = summary_fields(notice, plain)
        .into_iter()
        .map(|(name, value)| json!({"is_short": true, "text": text(format!("{name}: {value}"))}))
        .collect();
    let mut elements = vec![json!({"tag": "div", "fields": fields})];
    if !notice.text.is_empty() {
        let shown = sanitize_lines(&notice.text, MAX_TEXT_BYTES, plain);
        elements.push(json!({"tag": "div", "text": text(shown)}));
    }
    if let Some(url) = link(notice) {
        let read_on = json!({
            "tag": "button", "type": "default", "text": text("Read on".to_owned()), "url": url});
        elements.push(json!({"tag": "action", "actions": [read_on]}));
    }
    let template = match notice.severity {
        Severity::Info => "blue",
        Severity::Warning => "orange",
        Severity::Breaking => "red",
    };
    json!({
        "config": {"wide_screen_mode": true},
        "header": {"template": template, "title": text(headline(notice, 300, plain))},
        "elements": elements,
    })
}
