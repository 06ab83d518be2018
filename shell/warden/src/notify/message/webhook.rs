use jiff::Timestamp;
use reqwest::Url;
use serde_json::{Map, Value};

use super::Message;
use crate::notify::notice::Notice;
use crate::notify::sign;
use crate::notify::text::header;

/// The schema of what webhooks get.
pub const ALERT_SCHEMA: &str = "toolwarden/alert/v1";

/// The most bytes of the details; larger ones are left out.
const MOST_DETAILS: usize = 256 * 1024;

/// The notice as JSON, signed over the time and the body as they are sent.
pub(super) fn message(url: &Url, secret: Option<&str>, notice: &Notice, now: Timestamp) -> Message {
    let body = Value::Object(document(notice)).to_string();
    let mut headers = vec![("Toolwarden-Delivery", header(&notice.id))];
    if let Some(secret) = secret {
        let time = now.as_second();
        let signature = sign::hex(secret.as_bytes(), format!("{time}.{body}").as_bytes());
        headers.push(("Toolwarden-Signature", format!("t={time},v1={signature}")));
    }
    Message {
        url: url.clone(),
        headers,
        body,
    }
}

fn document(notice: &Notice) -> Map<String, Value> {
    let mut document = Map::new();
    document.insert("schema".to_owned(), ALERT_SCHEMA.into());
    document.extend(notice.document());
    let details = document.get("details").map(ToString::to_string);
    if details.is_some_and(|it| it.len() > MOST_DETAILS) {
        document.insert("details".to_owned(), Value::Null);
        document.insert("details_left_out".to_owned(), true.into());
    }
    document
}
