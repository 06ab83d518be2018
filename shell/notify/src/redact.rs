use std::fmt;

use reqwest::Url;

use super::sanitize::{plain, sanitize_line};
use toolwarden_settings::AlertChannel;

/// The minimum length of a part of an address that may be a secret; shorter ones are words.
const MIN_SECRET_LEN: usize = 6;

/// The maximum length of a quoted response.
const MAX_EXCERPT_LEN: usize = 300;

/// The text that replaces a secret.
const MASKED: &str = "***";

/// The secrets of a target. They are removed from texts of others before these are reported.
#[derive(Clone, Default)]
pub(super) struct TargetSecrets {
    /// The longest first, so that no part of one remains.
    secrets: Vec<String>,
}

impl fmt::Debug for TargetSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mask({} secrets)", self.secrets.len())
    }
}

impl TargetSecrets {
    pub(super) fn of(channel: &AlertChannel) -> Self {
        let mut secrets = Vec::new();
        match channel {
            AlertChannel::Webhook { url, secret }
            | AlertChannel::Feishu { url, secret }
            | AlertChannel::DingTalk { url, secret } => {
                collect_url_secrets(url, &mut secrets);
                secrets.extend(secret.clone());
            }
            AlertChannel::Slack { url } | AlertChannel::WeCom { url } => {
                collect_url_secrets(url, &mut secrets);
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
    pub(super) fn redacted_excerpt(&self, text: &str) -> String {
        let mut text = text.trim().to_owned();
        for secret in &self.secrets {
            text = text.replace(secret, MASKED);
        }
        sanitize_line(
            &toolwarden_secrets::mask_secrets(&text),
            MAX_EXCERPT_LEN,
            plain,
        )
    }
}

fn collect_url_secrets(address: &str, secrets: &mut Vec<String>) {
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
    secrets.extend(parts.filter(|part| part.len() >= MIN_SECRET_LEN));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_redacted() {
        let mask = TargetSecrets::of(&AlertChannel::DingTalk {
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
            assert_eq!(mask.redacted_excerpt(said), told, "{said}");
        }
        let long = "x".repeat(400);
        assert_eq!(mask.redacted_excerpt(&long).len(), MAX_EXCERPT_LEN);
        assert_eq!(
            format!("{mask:?}"),
            format!("Mask({} secrets)", mask.secrets.len())
        );
    }
}
