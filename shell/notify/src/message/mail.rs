use toolwarden_drift::ToolwatchSeverity;

use super::{headline, link, summary_fields};
use crate::hmac;
use crate::notice::Notice;
use crate::sanitize::{plain, sanitize_lines};

/// The maximum length of the text in bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The subject of a mail.
pub(crate) fn subject(notice: &Notice) -> String {
    let mark = format!("[{}] ", ToolwatchSeverity::from(notice.severity).as_str());
    mark + &headline(notice, 200, plain)
}

/// The text of a mail.
pub(crate) fn body(notice: &Notice) -> String {
    let mut body: String = summary_fields(notice, plain)
        .into_iter()
        .map(|(name, value)| format!("{:<10}{value}\n", format!("{name}:")))
        .collect();
    body.push_str(&format!("{:<10}", "Notice:"));
    body.push_str(&super::sanitize_line(
        &notice.id,
        super::MAX_NAME_LEN,
        plain,
    ));
    body.push_str("\n\n");
    body.push_str(&sanitize_lines(&notice.text, MAX_TEXT_BYTES, plain));
    if let Some(url) = link(notice) {
        body.push_str(&format!("\n\n{url}"));
    }
    body
}

/// The id of a mail: the same for the same notice, so that a mail program shows it once.
pub(crate) fn message_id(notice: &Notice) -> String {
    let digest = hmac::hmac_hex(b"toolwarden/mail/v1", notice.id.as_bytes());
    format!("<{digest}@toolwarden>")
}
