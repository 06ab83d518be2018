//! Protected resource metadata: tells clients which issuers the gateway accepts tokens from (RFC 9728).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolwarden_settings::IdentitySettings;

/// The path of the document, before the path of the resource.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The document about the resource at `path` (`""` or `/mcp`). `None` if no issuer is configured that a client
/// could request a token from.
#[must_use]
pub fn protected_resource(
    settings: &IdentitySettings,
    base_url: &str,
    path: &str,
) -> Option<Value> {
    let issuers: Vec<&str> = settings
        .jwt
        .iter()
        .filter_map(|jwt| jwt.issuer.as_deref())
        .filter(|issuer| issuer.starts_with("https://") || issuer.starts_with("http://"))
        .collect();
    if issuers.is_empty() {
        return None;
    }
    let scopes: BTreeSet<&String> = settings.jwt.iter().flat_map(|jwt| &jwt.scopes).collect();
    Some(json!({
        "resource": format!("{}{path}", base_url.trim_end_matches('/')),
        "authorization_servers": issuers,
        "scopes_supported": scopes,
        "bearer_methods_supported": ["header"],
    }))
}

/// The URL of that document, for `WWW-Authenticate`.
#[must_use]
pub fn metadata_url(base_url: &str, path: &str) -> String {
    format!("{}{WELL_KNOWN}{path}", base_url.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolwarden_settings::{JwtKeys, JwtSettings};

    use super::*;

    fn issuer(issuer: Option<&str>, scopes: &[&str]) -> JwtSettings {
        JwtSettings {
            issuer: issuer.map(str::to_owned),
            audience: "gw".to_owned(),
            keys: JwtKeys::Discovery,
            principal_claim: "sub".to_owned(),
            principal_prefix: String::new(),
            scopes: scopes.iter().map(|&scope| scope.to_owned()).collect(),
            leeway: Duration::ZERO,
            roles: None,
            refresh: Duration::ZERO,
            max_stale: Duration::ZERO,
        }
    }

    #[test]
    fn the_document_names_issuers_and_scopes() {
        let settings = IdentitySettings {
            jwt: vec![
                issuer(Some("https://one.example"), &["tools", "read"]),
                issuer(None, &["read"]),
                issuer(Some("internal"), &[]),
            ],
            ..IdentitySettings::default()
        };
        assert_eq!(
            protected_resource(&settings, "https://gw.example/", "/mcp"),
            Some(json!({
                "resource": "https://gw.example/mcp",
                "authorization_servers": ["https://one.example"],
                "scopes_supported": ["read", "tools"],
                "bearer_methods_supported": ["header"],
            }))
        );
        assert_eq!(
            metadata_url("https://gw.example/", "/mcp"),
            "https://gw.example/.well-known/oauth-protected-resource/mcp"
        );
        let unknown = IdentitySettings {
            jwt: vec![issuer(None, &[])],
            ..IdentitySettings::default()
        };
        assert_eq!(protected_resource(&unknown, "https://gw.example", ""), None);
    }
}
