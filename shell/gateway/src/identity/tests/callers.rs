//! Which credential counts, and that a wrong one never does.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use toolwarden_settings::{
    AdminSettings, ApiKeySettings, CertificateSettings, IdentitySettings, JwtKeys,
};

use super::support::{Signer, claims, jwt};
use crate::identity::{
    ApiKey, AuthMethod, AuthenticationError, AuthenticationFailure, Identities, Principal,
    TlsSubject,
};

const SECRET: &str = "a secret of at least thirty-two bytes";

fn settings(anonymous: Option<&str>) -> IdentitySettings {
    let key = |principal: &str, key: &str| ApiKeySettings {
        principal: principal.to_owned(),
        sha256: ApiKey::digest_of(key),
    };
    IdentitySettings {
        api_keys: vec![key("robot", "tw_robot"), key("root", "tw_root")],
        jwt: vec![jwt(JwtKeys::Secret(SECRET.to_owned()))],
        certificates: vec![CertificateSettings {
            subject: "host-1".to_owned(),
            principal: "cert:*".to_owned(),
        }],
        anonymous: anonymous.map(str::to_owned),
        admins: vec![AdminSettings::named("root")],
    }
}

fn headers(pairs: &[(&'static str, String)]) -> HeaderMap {
    let pairs = pairs.iter().map(|(name, value)| {
        let value = HeaderValue::try_from(value).unwrap();
        (HeaderName::from_static(name), value)
    });
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(name, value);
    }
    headers
}

type Known = (String, bool, AuthMethod);

fn authenticated_as(
    name: &str,
    admin: bool,
    via: AuthMethod,
) -> Result<Known, AuthenticationFailure> {
    Ok((name.to_owned(), admin, via))
}

fn known(found: Result<Principal, AuthenticationError>) -> Result<Known, AuthenticationFailure> {
    let known = found.map(|it| (it.name.to_string(), it.admin, it.auth_method));
    known.map_err(|refusal| refusal.reason())
}

#[tokio::test]
async fn one_credential_says_who_a_caller_is() {
    let token = Signer::Hs256(SECRET.into()).token(&claims());
    let bearer = |value: &str| ("authorization", format!("Bearer {value}"));
    let key = |value: &str| ("x-api-key", value.to_owned());
    let host = Some("host-1");
    let cases = [
        (vec![], None, Err(AuthenticationFailure::Missing)),
        (
            vec![bearer("tw_robot")],
            None,
            authenticated_as("robot", false, AuthMethod::ApiKey),
        ),
        (
            vec![key("tw_root")],
            None,
            authenticated_as("root", true, AuthMethod::ApiKey),
        ),
        (
            vec![bearer(&token)],
            None,
            authenticated_as("jwt:alice", false, AuthMethod::Jwt),
        ),
        (
            vec![("authorization", "bearer  tw_robot ".to_owned())],
            None,
            authenticated_as("robot", false, AuthMethod::ApiKey),
        ),
        (
            vec![],
            host,
            authenticated_as("cert:host-1", false, AuthMethod::Mtls),
        ),
        // A header goes before the certificate, right or wrong.
        (
            vec![bearer("tw_root")],
            host,
            authenticated_as("root", true, AuthMethod::ApiKey),
        ),
        (
            vec![bearer("tw_wrong")],
            host,
            Err(AuthenticationFailure::Malformed),
        ),
        (
            vec![],
            Some("host-2"),
            Err(AuthenticationFailure::Certificate),
        ),
        (
            vec![key("tw_wrong")],
            None,
            Err(AuthenticationFailure::Unknown),
        ),
        // Tokens are not keys.
        (vec![key(&token)], None, Err(AuthenticationFailure::Unknown)),
        (vec![key("")], None, Err(AuthenticationFailure::Unknown)),
        (
            vec![bearer(&ApiKey::digest_of("tw_root"))],
            None,
            Err(AuthenticationFailure::Malformed),
        ),
        (
            vec![("authorization", "Basic dHdfcm9vdDo=".to_owned())],
            None,
            Err(AuthenticationFailure::NotBearer),
        ),
        (
            vec![("authorization", "Bearer ".to_owned())],
            None,
            Err(AuthenticationFailure::NotBearer),
        ),
        (
            vec![("authorization", "tw_root".to_owned())],
            None,
            Err(AuthenticationFailure::NotBearer),
        ),
        (
            vec![("authorization", "Bearer ключ".to_owned())],
            None,
            Err(AuthenticationFailure::NotBearer),
        ),
        (
            vec![bearer("tw_root"), key("tw_root")],
            None,
            Err(AuthenticationFailure::MultipleCredentials),
        ),
        (
            vec![bearer("tw_root"), bearer("tw_root")],
            None,
            Err(AuthenticationFailure::MultipleCredentials),
        ),
    ];
    // Only callers that send no credential are anonymous.
    for anonymous in [None, Some("guest")] {
        let identities = Identities::load(&settings(anonymous)).await.unwrap();
        for (sent, common_name, expected) in &cases {
            let subject = common_name.map(|name: &str| TlsSubject {
                common_name: Some(name.to_owned()),
                alternatives: Vec::new(),
                thumbprint: String::new(),
            });
            let found = identities.identify(&headers(sent), subject.as_ref()).await;
            let found = known(found);
            let expected = match (expected, anonymous) {
                (Err(AuthenticationFailure::Missing), Some(name)) => {
                    authenticated_as(name, false, AuthMethod::Anonymous)
                }
                _ => expected.clone(),
            };
            assert_eq!(found, expected, "{sent:?} {common_name:?} {anonymous:?}");
        }
    }
}

#[tokio::test]
async fn a_certificate_nobody_asked_for_is_no_credential() {
    let settings = IdentitySettings {
        anonymous: Some("guest".to_owned()),
        ..IdentitySettings::default()
    };
    let identities = Identities::load(&settings).await.unwrap();
    let subject = TlsSubject {
        common_name: Some("host-1".to_owned()),
        alternatives: Vec::new(),
        thumbprint: String::new(),
    };
    let found = identities.identify(&HeaderMap::new(), Some(&subject)).await;
    assert_eq!(
        known(found),
        authenticated_as("guest", false, AuthMethod::Anonymous)
    );
}

#[tokio::test]
async fn credentials_are_not_shown() {
    let identities = Identities::load(&settings(None)).await.unwrap();
    let token = Signer::Hs256(SECRET.into()).token(&claims());
    for value in ["tw_wrong", "tw_root", &token] {
        let sent = headers(&[("authorization", format!("Bearer {value}"))]);
        let found = identities.identify(&sent, None).await;
        let shown = format!("{found:?} {:?}", identities);
        let signature = value.rsplit('.').next().unwrap();
        assert!(!shown.contains(signature), "{shown}");
    }
    let shown = format!("{identities:?}");
    assert!(!shown.contains(SECRET), "{shown}");
    assert!(!shown.contains(&ApiKey::digest_of("tw_root")), "{shown}");
}

#[tokio::test]
async fn what_cannot_be_used_is_told_at_load() {
    let rsa = include_str!("rsa/small.pem");
    let private = "-----BEGIN PRIVATE KEY-----\nMC4CAQA=\n-----END PRIVATE KEY-----\n";
    for (keys, message) in [
        (
            JwtKeys::Secret("short".to_owned()),
            "the secret for tokens of `https://issuer.example` is too short: at least 32 bytes, say from `openssl rand -base64 32`",
        ),
        (
            JwtKeys::PublicKey("no".to_owned()),
            "the public key for tokens of `https://issuer.example` cannot be used: it is not a PEM text with a public key or a certificate",
        ),
        (
            JwtKeys::PublicKey(private.to_owned()),
            "the public key for tokens of `https://issuer.example` cannot be used: it is a private key; only the public one belongs here",
        ),
        (
            JwtKeys::PublicKey(rsa.to_owned()),
            "the public key for tokens of `https://issuer.example` cannot be used: only RSA of 2048 to 8192 bits, P-256, P-384 and Ed25519 are supported",
        ),
        (
            JwtKeys::Jwks("ftp://user:password@keys.example/set".to_owned()),
            "`ftp://keys.example/set` is not an http or https address",
        ),
        (
            JwtKeys::Jwks("http://keys.example/set".to_owned()),
            "`http://keys.example/set` is not https: keys are fetched over https only, or over http from \
             loopback, because others could replace them",
        ),
    ] {
        let settings = IdentitySettings {
            jwt: vec![jwt(keys)],
            ..IdentitySettings::default()
        };
        let error = Identities::load(&settings).await.unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let mut nameless = jwt(JwtKeys::Discovery);
    nameless.issuer = None;
    let settings = IdentitySettings {
        jwt: vec![nameless],
        ..IdentitySettings::default()
    };
    let error = Identities::load(&settings).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "keys can be discovered only from an issuer: name one"
    );
}
