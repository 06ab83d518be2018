//! The messages of each channel, one file for each.

mod dingtalk;
mod feishu;
mod mail;
mod slack;
mod webhook;
mod wecom;

use jiff::Timestamp;
use reqwest::Url;

pub(super) use mail::{body as mail_body, message_id as mail_id, subject as mail_subject};
pub use webhook::ALERT_SCHEMA;

use super::notice::Notice;
use super::sanitize::{EscapeFn, markdown, sanitize_line, sanitize_lines};
use toolwarden_drift::ToolwatchSeverity;
use toolwarden_settings::AlertChannel;

/// The maximum length of a name in a message.
const MAX_NAME_LEN: usize = 200;

/// The maximum length of a link.
const MAX_LINK_LEN: usize = 1_000;

/// The maximum number of lines of a text in a chat.
const MAX_LINES: usize = 100;

/// A request to send.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WebhookRequest {
    /// The address, including a signature if the channel puts it there.
    pub(super) url: Url,
    /// Headers besides the type.
    pub(super) headers: Vec<(&'static str, String)>,
    /// The body, JSON.
    pub(super) body: String,
}

/// The request that delivers a notice to an address; `None` for a channel that does not use HTTP.
pub(super) fn compose(
    channel: &AlertChannel,
    url: &Url,
    notice: &Notice,
    now: Timestamp,
) -> Option<WebhookRequest> {
    let message = |body: serde_json::Value| WebhookRequest {
        url: url.clone(),
        headers: Vec::new(),
        body: body.to_string(),
    };
    match channel {
        AlertChannel::Webhook { secret, .. } => {
            Some(webhook::message(url, secret.as_deref(), notice, now))
        }
        AlertChannel::Slack { .. } => Some(message(slack::body(notice))),
        AlertChannel::Feishu { secret, .. } => {
            Some(message(feishu::body(secret.as_deref(), notice, now)))
        }
        AlertChannel::DingTalk { secret, .. } => {
            Some(dingtalk::message(url, secret.as_deref(), notice, now))
        }
        AlertChannel::WeCom { .. } => Some(message(wecom::body(notice))),
        AlertChannel::Smtp { .. } => None,
    }
}

/// The headline in one line. It contains a fixed word, for bots that require one.
fn headline(notice: &Notice, most: usize, escape: EscapeFn) -> String {
    sanitize_line(&format!("Toolwarden: {}", notice.title), most, escape)
}

/// The key facts, each with its label.
fn summary_fields(notice: &Notice, escape: EscapeFn) -> Vec<(&'static str, String)> {
    let shown = |text: &str| sanitize_line(text, MAX_NAME_LEN, escape);
    let mut facts = vec![
        (
            "Severity",
            shown(ToolwatchSeverity::from(notice.severity).as_str()),
        ),
        ("Kind", shown(notice.kind.as_str())),
        ("Server", shown(&notice.server)),
    ];
    if let Some(tool) = &notice.tool {
        facts.push(("Tool", shown(tool)));
    }
    facts.push(("Time", format!("{:.0}", notice.at)));
    facts
}

/// The link, if it is a valid address: escaped so that nothing in it ends the link early.
fn link(notice: &Notice) -> Option<String> {
    let url: Url = notice.link.as_deref()?.parse().ok()?;
    if !matches!(url.scheme(), "http" | "https") || url.as_str().len() > MAX_LINK_LEN {
        return None;
    }
    let mut written = String::new();
    for c in url.as_str().chars() {
        match c {
            '(' => written.push_str("%28"),
            ')' => written.push_str("%29"),
            '|' => written.push_str("%7C"),
            _ => written.push(c),
        }
    }
    Some(written)
}

/// The whole notice in the Markdown subset of DingTalk and WeCom, with a maximum length in bytes.
fn render_markdown(notice: &Notice, most: usize, line_break: &str) -> String {
    let title = headline(notice, 400, markdown);
    let facts: Vec<String> = summary_fields(notice, markdown)
        .into_iter()
        .map(|(name, value)| format!("> **{name}:** {value}"))
        .collect();
    let facts = facts.join(&format!("{line_break}\n"));
    let link = link(notice).map_or_else(String::new, |url| format!("\n\n[Read on]({url})"));
    let frame = title.len() + facts.len() + link.len() + 16;
    let mut text: Vec<&str> = notice.text.lines().take(MAX_LINES + 1).collect();
    if text.len() > MAX_LINES {
        text.truncate(MAX_LINES);
        text.push("…");
    }
    // Line breaks become longer after the text was cut.
    let breaks = text.len() * line_break.len();
    let room = most.saturating_sub(frame + breaks);
    let text =
        sanitize_lines(&text.join("\n"), room, markdown).replace('\n', &format!("{line_break}\n"));
    format!("### {title}\n\n{facts}\n\n{text}{link}")
}
