//! The secrets of settings, told to the masker that every outgoing text passes.

use std::path::Path;

use serde_json::Value;
use toolwarden_mcp::{Endpoint, remember_secrets, secret_arguments, secret_parts, suggests_secret};
use toolwarden_model::json::Pointer;

use super::{AlertChannel, JwtKeys, Settings};

/// The shortest value of a variable that is taken for a secret though no name suggests it.
const LEAST_UNNAMED: usize = 12;

/// A value that a reference put into the settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PutIn {
    /// The variable; none where the value is that of a file.
    pub(super) variable: Option<String>,
    pub(super) value: String,
}

/// Tells the masker every secret of the settings.
pub(super) fn remember(settings: &Settings, document: &Value, put_in: &[(Pointer, PutIn)]) {
    let mut secrets: Vec<&str> = Vec::new();
    for server in &settings.servers {
        match &server.endpoint {
            Endpoint::Command(command) => {
                secrets.extend(named(&command.env));
                secrets.extend(secret_arguments(&command.args));
            }
            Endpoint::Url(url) => {
                secrets.extend(named(&url.headers));
                secrets.extend(secret_parts(&url.url));
            }
        }
    }
    for jwt in &settings.identity.jwt {
        if let JwtKeys::Secret(secret) = &jwt.keys {
            secrets.push(secret);
        }
    }
    for target in &settings.alerts {
        secrets.extend(of_channel(&target.channel));
    }
    // Of keys of callers the settings have the digests only.
    let keys = document.get("identity").map(keys_in).unwrap_or_default();
    secrets.extend(keys);
    let own = put_in.iter().filter(|(at, it)| is_secret(at, it));
    secrets.extend(own.map(|(_, it)| it.value.as_str()));
    remember_secrets(secrets);
}

fn named(pairs: &[(String, String)]) -> impl Iterator<Item = &str> {
    let secret = pairs.iter().filter(|(name, _)| suggests_secret(name));
    secret.map(|(_, value)| value.as_str())
}

fn of_channel(channel: &AlertChannel) -> Vec<&str> {
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
    // The address of a bot ends with what lets anybody write in its name.
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    let last = (last.len() >= LEAST_UNNAMED && !last.contains('.')).then_some(last);
    let parts = secret_parts(url).chain(secret);
    parts.chain(last).collect()
}

/// The texts under `key` of `api_keys`, in whatever spelling.
fn keys_in(identity: &Value) -> Vec<&str> {
    let sections = identity.as_object().into_iter().flatten();
    let lists = sections.filter_map(|(_, value)| value.as_array()).flatten();
    let keys = lists.filter_map(|entry| entry.get("key").and_then(Value::as_str));
    keys.collect()
}

/// Whether a value that was put in is a secret: it stands where secrets do, and its name or its looks say so.
fn is_secret(at: &Pointer, put_in: &PutIn) -> bool {
    let path: Vec<String> = at.segments().collect();
    let place = path.first().map(String::as_str).unwrap_or_default();
    let secret_place =
        super::read::is_list_of_servers(place) || ["identity", "alerts"].contains(&place);
    if !secret_place {
        return false;
    }
    let value = put_in.value.as_str();
    let Some(variable) = &put_in.variable else {
        return !value.contains("PUBLIC KEY-----") && !value.contains("CERTIFICATE-----");
    };
    let by_name = suggests_secret(variable) || path.last().is_some_and(|key| suggests_secret(key));
    let random = value.len() >= LEAST_UNNAMED
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && !value.contains("://")
        && !(value.starts_with('/') && Path::new(value).exists());
    by_name || random
}

#[cfg(test)]
mod tests {
    use toolwarden_mcp::masked;

    use crate::settings::Settings;

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
            assert_eq!(masked(&format!("<{secret}>")), "<***>", "{secret}");
        }
        for word in ["127.0.0.1", "read-only", "warning", "overview", "h.example"] {
            assert_eq!(masked(word), word);
        }
    }
}
