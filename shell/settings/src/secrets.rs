//! Registers the secrets of the settings with the masker that filters every outgoing text.

use std::path::Path;

use serde_json::Value;
use toolwarden_mcp::{
    Endpoint, is_secret_name, register_secrets, secret_arguments, secret_url_parts,
};
use toolwarden_model::json::Pointer;

use super::{AlertChannel, JwtKeys, Settings};

/// The minimum length of a variable's value that counts as a secret although its name does not suggest one.
const MIN_UNNAMED_SECRET_LEN: usize = 12;

/// A value that replaced a reference in the settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ResolvedReference {
    /// The variable; `None` if the value comes from a file.
    pub(super) variable: Option<String>,
    pub(super) value: String,
}

/// Registers every secret of the settings with the masker.
pub(super) fn register_settings_secrets(
    settings: &Settings,
    document: &Value,
    interpolated: &[(Pointer, ResolvedReference)],
) {
    let mut secrets: Vec<&str> = Vec::new();
    for server in &settings.servers {
        match &server.endpoint {
            Endpoint::Command(command) => {
                secrets.extend(named(&command.env));
                secrets.extend(secret_arguments(&command.args));
            }
            Endpoint::Url(url) => {
                secrets.extend(named(&url.headers));
                secrets.extend(secret_url_parts(&url.url));
            }
        }
    }
    for jwt in &settings.identity.jwt {
        if let JwtKeys::Secret(secret) = &jwt.keys {
            secrets.push(secret);
        }
    }
    for target in &settings.alerts {
        secrets.extend(channel_secrets(&target.channel));
    }
    // For API keys, the settings hold only the digests.
    let keys = document
        .get("identity")
        .map(api_key_texts)
        .unwrap_or_default();
    secrets.extend(keys);
    let own = interpolated.iter().filter(|(at, it)| is_secret(at, it));
    secrets.extend(own.map(|(_, it)| it.value.as_str()));
    register_secrets(secrets);
}

fn named(pairs: &[(String, String)]) -> impl Iterator<Item = &str> {
    let secret = pairs.iter().filter(|(name, _)| is_secret_name(name));
    secret.map(|(_, value)| value.as_str())
}

fn channel_secrets(channel: &AlertChannel) -> Vec<&str> {
    let (url, secret) = match channel {
        AlertChannel::Webhook { url, secret }
        | AlertChannel::Feishu { url, secret }
        | AlertChannel::DingTalk { url, secret } => (url, secret.as_deref()),
        AlertChannel::Slack { url } | AlertChannel::WeCom { url } => (url, None),
        AlertChannel::Smtp { credentials, .. } => {
            let password = credentials.as_ref().map(|(_, password)| password.as_str());
            return password.into_iter().collect();
        }
    };
    // The last part of a bot's address is a secret: anyone who has it can post as the bot.
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    let last = (last.len() >= MIN_UNNAMED_SECRET_LEN && !last.contains('.')).then_some(last);
    let parts = secret_url_parts(url).chain(secret);
    parts.chain(last).collect()
}

/// The texts under `key` of `api_keys`, in any spelling.
fn api_key_texts(identity: &Value) -> Vec<&str> {
    let sections = identity.as_object().into_iter().flatten();
    let lists = sections.filter_map(|(_, value)| value.as_array()).flatten();
    let keys = lists.filter_map(|entry| entry.get("key").and_then(Value::as_str));
    keys.collect()
}

/// Whether an expanded value is a secret: it is in a place for secrets, and its name or its form suggests
/// one.
fn is_secret(at: &Pointer, interpolated: &ResolvedReference) -> bool {
    let path: Vec<String> = at.segments().collect();
    let place = path.first().map(String::as_str).unwrap_or_default();
    let secret_place =
        super::keys::is_server_list(place) || ["identity", "alerts"].contains(&place);
    if !secret_place {
        return false;
    }
    let value = interpolated.value.as_str();
    let Some(variable) = &interpolated.variable else {
        return !value.contains("PUBLIC KEY-----") && !value.contains("CERTIFICATE-----");
    };
    let by_name = is_secret_name(variable) || path.last().is_some_and(|key| is_secret_name(key));
    let random = value.len() >= MIN_UNNAMED_SECRET_LEN
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && !value.contains("://")
        && !(value.starts_with('/') && Path::new(value).exists());
    by_name || random
}

#[cfg(test)]
mod tests {
    use toolwarden_mcp::mask_secrets;

    use crate::Settings;

    #[test]
    fn every_secret_of_the_settings_is_masked() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "from-a-file-x\n").unwrap();
        let text = "
listen: ${PLACE}:1
servers:
  a:
    command: x
    args: [--mode, '${MODE}', '--token=literal-token', '--id=${OPAQUE}', 'postgres://u:db-password@h/x']
    env: {API_TOKEN: env-literal-x, LEVEL: warning, DATA: '${file:token}'}
  b: {url: 'https://h.example/mcp?api_key=query-key-x', headers: {Authorization: 'Bearer ${UP_KEY}', X-Kind: overview}}
identity:
  api_keys: [{principal: ci, key: plain-api-key-of-the-build}]
  jwt: [{audience: a, issuer: 'https://i.example', secret: jwt-secret-of-at-least-32-bytes-00}]
alerts:
  s: {slack: 'https://hooks.slack.com/services/T0/B0/slack-path-secret'}
  m: {smtp: {server: mail.example, user: u, password: mail-secret-x, from: a@b.c, to: d@e.f}}
";
        let variable = |name: &str| match name {
            "PLACE" => Some("127.0.0.1".to_owned()),
            "MODE" => Some("read-only".to_owned()),
            "OPAQUE" => Some("a1b2c3d4e5f6a7b8".to_owned()),
            "UP_KEY" => Some("upstream-credential".to_owned()),
            _ => None,
        };
        let path = folder.path().join("toolwarden.yaml");
        Settings::of_text(text, &path, &variable).unwrap();
        for secret in [
            "literal-token",
            "a1b2c3d4e5f6a7b8",
            "db-password",
            "env-literal-x",
            "from-a-file-x",
            "query-key-x",
            "upstream-credential",
            "plain-api-key-of-the-build",
            "jwt-secret-of-at-least-32-bytes-00",
            "slack-path-secret",
            "mail-secret-x",
        ] {
            assert_eq!(mask_secrets(&format!("<{secret}>")), "<***>", "{secret}");
        }
        for word in ["127.0.0.1", "read-only", "warning", "overview", "h.example"] {
            assert_eq!(mask_secrets(word), word);
        }
    }
}
