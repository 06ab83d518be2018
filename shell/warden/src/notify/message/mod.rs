//! What is sent, by channel: one file for each.

mod dingtalk;
mod feishu;
mod mail;
mod slack;
mod webhook;
mod wecom;

use jiff::Timestamp;
use reqwest::Url;

pub(super) use mail::{body as mail_body, id as mail_id, subject as mail_subject};
pub use webhook::ALERT_SCHEMA;

use super::notice::Notice;
use super::text::{Escape, line, lines, markdown};
use crate::settings::AlertChannel;

/// The most of a name in a message.
const MOST_NAME: usize = 200;

/// The longest address to read on.
const MOST_LINK: usize = 1_000;

/// The most lines of a text in a chat.
const MOST_LINES: usize = 100;

/// A request that is to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Where to, with a signature where it belongs there.
    pub(super) url: Url,
    /// Headers besides the type.
    pub(super) headers: Vec<(&'static str, String)>,
    /// The body, JSON.
    pub(super) body: String,
}

/// The request that brings a notice to an address; none for a channel that is not HTTP.
pub(super) fn compose(
    channel: &AlertChannel,
    url: &Url,
    notice: &Notice,
    now: Timestamp,
) -> Option<Message> {
    let message = |body: serde_json::Value| Message {
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

/// What happened, in one line. Robots that only take messages with a certain word can be given ours.
fn headline(notice: &Notice, most: usize, escape: Escape) -> String {
    line(&format!("Toolwarden: {}", notice.title), most, escape)
}

/// What a reader looks for first, each with its name.
fn facts(notice: &Notice, escape: Escape) -> Vec<(&'static str, String)> {
    let shown = |text: &str| line(text, MOST_NAME, escape);
    let mut facts = vec![
        ("Severity", shown(notice.severity.as_str())),
        ("Kind", shown(notice.kind.as_str())),
        ("Server", shown(&notice.server)),
    ];
    if let Some(tool) = &notice.tool {
        facts.push(("Tool", shown(tool)));
    }
    facts.push(("Time", format!("{:.0}", notice.at)));
    facts
}

/// The address to read on, where it is one: written so that nothing in it ends a link.
fn link(notice: &Notice) -> Option<String> {
    let url: Url = notice.link.as_deref()?.parse().ok()?;
    if !matches!(url.scheme(), "http" | "https") || url.as_str().len() > MOST_LINK {
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

/// The whole notice in the Markdown that both DingTalk and WeCom know, at most so many bytes long.
fn in_markdown(notice: &Notice, most: usize, line_break: &str) -> String {
    let title = headline(notice, 400, markdown);
    let facts: Vec<String> = facts(notice, markdown)
        .into_iter()
        .map(|(name, value)| format!("> **{name}:** {value}"))
        .collect();
    let facts = facts.join(&format!("{line_break}\n"));
    let link = link(notice).map_or_else(String::new, |url| format!("\n\n[Read on]({url})"));
    let frame = title.len() + facts.len() + link.len() + 16;
    let mut text: Vec<&str> = notice.text.lines().take(MOST_LINES + 1).collect();
    if text.len() > MOST_LINES {
        text.truncate(MOST_LINES);
        text.push("…");
    }
    // Breaks are lengthened after the text was cut.
    let breaks = text.len() * line_break.len();
    let room = most.saturating_sub(frame + breaks);
    let text = lines(&text.join("\n"), room, markdown).replace('\n', &format!("{line_break}\n"));
    format!("### {title}\n\n{facts}\n\n{text}{link}")
}
