//! Credentials of callers: tokens and certificates.

use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use ring::hmac;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use toolwarden_gateway::identity::{Identities, Principal, TlsSubject};
use toolwarden_settings::{IdentitySettings, JwtKeys, JwtSettings};

/// The secret that signs tokens; seeds are signed with it too.
const SECRET: &str = "a-secret-for-fuzzing-of-32-bytes";
const AUDIENCE: &str = "gateway";

struct Authenticator {
    runtime: Runtime,
    identities: Identities,
}

fn authenticator() -> Option<&'static Authenticator> {
    static AUTHENTICATOR: OnceLock<Option<Authenticator>> = OnceLock::new();
    AUTHENTICATOR.get_or_init(start_authenticator).as_ref()
}

fn start_authenticator() -> Option<Authenticator> {
    let issuer = JwtSettings {
        issuer: None,
        audience: AUDIENCE.to_owned(),
        keys: JwtKeys::Secret(SECRET.to_owned()),
        principal_claim: "sub".to_owned(),
        principal_prefix: "jwt:".to_owned(),
        scopes: Vec::new(),
        leeway: Duration::from_secs(5),
        roles: None,
        refresh: Duration::from_secs(600),
        max_stale: Duration::from_secs(3600),
    };
    let settings = IdentitySettings {
        jwt: vec![issuer],
        ..IdentitySettings::default()
    };
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    let identities = runtime.block_on(Identities::load(&settings)).ok()?;
    Some(Authenticator {
        runtime,
        identities,
    })
}

/// A token that is accepted is signed with the secret, is for this audience, and names its principal.
///
/// The input is a token. If it is JSON, it is the claims of a token that is then signed.
pub fn bearer_token(data: &[u8]) {
    let token = match crate::parsed(data) {
        Some(claims) => signed(&claims.value.to_string()),
        None => String::from_utf8_lossy(data).into_owned(),
    };
    let Some(principal) = identify(&token) else {
        return;
    };
    let token = token.trim();
    let (message, signature) = token.rsplit_once('.').unwrap_or_default();
    assert_eq!(signature, sign(message));
    let claims = message.split_once('.').unwrap_or_default().1;
    let claims = URL_SAFE_NO_PAD.decode(claims).unwrap_or_default();
    let claims: Value = serde_json::from_slice(&claims).unwrap_or_default();
    let subject = claims.get("sub").and_then(Value::as_str);
    assert_eq!(
        subject.map(|it| format!("jwt:{it}")),
        Some(principal.name.to_string())
    );
    let audience = claims.get("aud");
    let audiences = audience.and_then(Value::as_array);
    assert!(
        audience.and_then(Value::as_str) == Some(AUDIENCE)
            || audiences.is_some_and(|all| all.contains(&Value::from(AUDIENCE))),
        "{claims}"
    );
    assert!(claims.get("exp").is_some_and(Value::is_number), "{claims}");
}

fn identify(token: &str) -> Option<Principal> {
    let authenticator = authenticator();
    assert!(authenticator.is_some(), "no authenticator");
    let Authenticator {
        runtime,
        identities,
    } = authenticator?;
    let value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
    runtime.block_on(identities.identify(&headers, None)).ok()
}

fn signed(claims: &str) -> String {
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256"}"#);
    let message = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims));
    let signature = sign(&message);
    format!("{message}.{signature}")
}

fn sign(message: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    URL_SAFE_NO_PAD.encode(hmac::sign(&key, message.as_bytes()))
}

/// A certificate that can be parsed has the thumbprint of its bytes, and is read the same way twice.
pub fn client_certificate(data: &[u8]) {
    let subject = TlsSubject::of_certificate(data);
    if subject != TlsSubject::default() {
        let digest = ring::digest::digest(&ring::digest::SHA256, data);
        assert_eq!(subject.thumbprint, URL_SAFE_NO_PAD.encode(digest));
    }
    assert_eq!(TlsSubject::of_certificate(data), subject);
}
