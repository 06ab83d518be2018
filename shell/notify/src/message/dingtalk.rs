use jiff::Timestamp;
use reqwest::Url;
use serde_json::json;

use super::{WebhookRequest, headline, render_markdown};
use crate::hmac;
use crate::notice::Notice;
use crate::sanitize::plain;

/// The maximum length of the text in bytes: a whole message has at most twenty thousand.
const MAX_TEXT_BYTES: usize = 12_000;

/// Markdown; the address carries the time in milliseconds and the signature of time and secret.
pub(super) fn message(
    url: &Url,
    secret: Option<&str>,
    notice: &Notice,
    now: Timestamp,
) -> WebhookRequest {
    let mut url = url.clone();
    if let Some(secret) = secret {
        let time = now.as_millisecond();
        let signature =
            hmac::hmac_base64(secret.as_bytes(), format!("{time}\n{secret}").as_bytes());
        url.query_pairs_mut()
            .append_pair("timestamp", &time.to_string())
            .append_pair("sign", &signature);
    }
    let body = json!({
        "msgtype": "markdown",
        "markdown": {
            // Shown in lists of conversations, without markup.
            "title": headline(notice, 200, plain),
            "text": render_markdown(notice, MAX_TEXT_BYTES, "  "),
        },
    });
    WebhookRequest {
        url,
        headers: Vec::new(),
        body: body.to_string(),
    }
}
