use std::fmt;

use reqwest::Url;

use super::text::{line, plain};
use crate::settings::AlertChannel;

/// The least length of a part of an address that may be a secret; shorter ones are words.
const LEAST: usize = 6;

/// The most that is told of an answer.
const MOST: usize = 300;

/// What stands for a secret.
const MASKED: &str = "***";

/// The secrets of a target. What others say is told without them.
#[derive(Clone, Default)]
pub(super) struct Mask {
    /// The longest first, so that none is left over in part.
    secrets: Vec<String>,
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mask({} secrets)", self.secrets.len())
    }
}

impl Mask {
    pub(super) fn of(channel: &AlertChannel) -> Self {
        let mut secrets = Vec::new();
        match channel {
            AlertChannel::Webhook { url, secret }
            | AlertChannel::Feishu { url, secret }
            | AlertChannel::DingTalk { url, secret } => {
                of_address(url, &mut secrets);
                secrets.extend(secret.clone());
            }
            AlertChannel::Slack { url } | AlertChannel::WeCom { url } => {
                of_address(url, &mut secrets);
            }
            AlertChannel::Smtp { credentials, .. } => {
                secrets.extend(credentials.clone().map(|(_, password)| password));
            }
        }
        secrets.retain(|secret| !secret.is_empty());
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    /// The beginning of a text of others, on one line and without secrets.
    pub(super) fn excerpt(&self, text: &str) -> String {
        let mut text = text.trim().to_owned();
        for secret in &self.secrets {
            text = text.replace(secret, MASKED);
        }
        line(&toolwarden_mcp::masked(&text), MOST, plain)
    }
}

fn of_address(address: &str, secrets: &mut Vec<String>) {
    secrets.push(address.to_owned());
    let Ok(url) = address.parse::<Url>() else {
        return;
    };
    secrets.push(url.to_string());
    let pairs = url
        .query_pairs()
        .map(|(_, value)| value.into_owned())
        .collect::<Vec<_>>();
    let written = url.query().unwrap_or_default().split(['&', '=']);
    let parts = url.path().split('/').chain(written);
    let parts = parts.chain([url.username(), url.password().unwrap_or_default()]);
    let parts = parts.map(str::to_owned).chain(pairs);
    secrets.extend(parts.filter(|part| part.len() >= LEAST));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_told() {
        let mask = Mask::of(&AlertChannel::DingTalk {
            url: "https://me:hunter22@oapi.example/robot/T0K3N-abc?access_token=a%2Fb%20c1234"
                .to_owned(),
            secret: Some("SEC1".to_owned()),
        });
        for (said, told) in [
            ("nothing here", "nothing here"),
            ("no T0K3N-abc", "no ***"),
            ("a/b c1234 or a%2Fb%20c1234", "*** or ***"),
            ("SEC1!", "***!"),
            ("user hunter22", "user ***"),
            ("a\nb\u{1b}", "a\\u{a}b\\u{1b}"),
        ] {
            assert_eq!(mask.excerpt(said), told, "{said}");
        }
        let long = "x".repeat(400);
        assert_eq!(mask.excerpt(&long).len(), MOST);
        assert_eq!(
            format!("{mask:?}"),
            format!("Mask({} secrets)", mask.secrets.len())
        );
    }
}
