use jiff::Timestamp;
use reqwest::Url;
use serde_json::{Map, Value};

use super::WebhookRequest;
use crate::hmac;
use crate::notice::Notice;
use crate::sanitize::header_value;

/// The schema of webhook bodies.
pub const ALERT_SCHEMA: &str = "toolwarden/alert/v1";

/// The maximum size of the details in bytes; larger ones are omitted.
const MAX_DETAILS_BYTES: usize = 256 * 1024;

/// The notice as JSON, with a signature over the time and the body as sent.
pub(super) fn message(
    url: &Url,
    secret: Option<&str>,
    notice: &Notice,
    now: Timestamp,
) -> WebhookRequest {
    let body = Value::Object(document(notice)).to_string();
    let mut headers = vec![("Toolwarden-Delivery", header_value(&notice.id))];
    if let Some(secret) = secret {
        let time = now.as_second();
        let signature = hmac::hmac_hex(secret.as_bytes(), format!("{time}.{body}").as_bytes());
        headers.push(("Toolwarden-Signature", format!("t={time},v1={signature}")));
    }
    WebhookRequest {
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
    if details.is_some_and(|it| it.len() > MAX_DETAILS_BYTES) {
        document.insert("details".to_owned(), Value::Null);
        document.insert("details_left_out".to_owned(), true.into());
    }
    document
}
