use jiff::Timestamp;
use reqwest::Url;
use serde_json::json;

use super::{Message, headline, in_markdown};
use crate::notify::notice::Notice;
use crate::notify::sign;
use crate::notify::text::plain;

/// The most bytes of the text: a whole message has at most twenty thousand.
const MOST_TEXT: usize = 12_000;

/// Markdown; the address carries the time in milliseconds and the signature of time and secret.
pub(super) fn message(url: &Url, secret: Option<&str>, notice: &Notice, now: Timestamp) -> Message {
    let mut url = url.clone();
    if let Some(secret) = secret {
        let time = now.as_millisecond();
        let signature = sign::base64(secret.as_bytes(), format!("{time}\n{secret}").as_bytes());
        url.query_pairs_mut()
            .append_pair("timestamp", &time.to_string())
            .append_pair("sign", &signature);
    }
    let body = json!({
        "msgtype": "markdown",
        "markdown": {
            // Shown in lists of conversations, where nothing is markup.
            "title": headline(notice, 200, plain),
            "text": in_markdown(notice, MOST_TEXT, "  "),
        },
    });
    Message {
        url,
        headers: Vec::new(),
        body: body.to_string(),
    }
}
