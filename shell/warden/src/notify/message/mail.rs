use super::{facts, headline, link};
use crate::notify::notice::Notice;
use crate::notify::sign;
use crate::notify::text::{lines, plain};

/// The most bytes of the text.
const MOST_TEXT: usize = 64 * 1024;

/// The subject of a mail.
pub(in crate::notify) fn subject(notice: &Notice) -> String {
    let mark = format!("[{}] ", notice.severity.as_str());
    mark + &headline(notice, 200, plain)
}

/// The text of a mail.
pub(in crate::notify) fn body(notice: &Notice) -> String {
    let mut body: String = facts(notice, plain)
        .into_iter()
        .map(|(name, value)| format!("{:<10}{value}\n", format!("{name}:")))
        .collect();
    body.push_str(&format!("{:<10}", "Notice:"));
    body.push_str(&super::line(&notice.id, super::MOST_NAME, plain));
    body.push_str("\n\n");
    body.push_str(&lines(&notice.text, MOST_TEXT, plain));
    if let Some(url) = link(notice) {
        body.push_str(&format!("\n\n{url}"));
    }
    body
}

/// The id of a mail: the same for the same notice, so that a mail program shows it once.
pub(in crate::notify) fn id(notice: &Notice) -> String {
    let digest = sign::hex(b"toolwarden/mail/v1", notice.id.as_bytes());
    format!("<{digest}@toolwarden>")
}
