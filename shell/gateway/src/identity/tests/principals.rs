//! A principal belongs to one source, whatever others call their users.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolwarden_settings::{
    AdminSettings, ApiKeySettings, CertificateSettings, IdentitySettings, JwtKeys, JwtSettings,
    RoleClaim,
};

use super::support::{Issuer, Signer, bearer, claims, claims_with, jwt, with_issuer};
use crate::identity::{
    ApiKey, AuthenticationError, AuthenticationFailure, Identities, Principal, Timing, TlsSubject,
};

const OTHER: &str = "https://other.example";

fn issuer(signer: &Signer, name: &str, prefix: &str) -> JwtSettings {
    JwtSettings {
        issuer: Some(name.to_owned()),
        principal_prefix: prefix.to_owned(),
        ..jwt(JwtKeys::PublicKey(signer.pem()))
    }
}

fn reason(
    found: Result<Principal, AuthenticationError>,
) -> Result<(String, bool), AuthenticationFailure> {
    let found = found.map_err(|refusal| refusal.reason());
    found.map(|it| (it.name.to_string(), it.admin))
}

#[tokio::test]
async fn a_token_cannot_name_a_principal_of_another_source() {
    let (one, other) = (Signer::es256(), Signer::eddsa());
    let settings = IdentitySettings {
        api_keys: vec![ApiKeySettings {
            principal: "robot".to_owned(),
            sha256: ApiKey::digest_of("tw_robot"),
        }],
        anonymous: Some("guest".to_owned()),
        certificates: vec![
            CertificateSettings {
                subject: "builder-1".to_owned(),
                principal: "builder".to_owned(),
            },
            CertificateSettings {
                subject: "*".to_owned(),
                principal: "cert:*".to_owned(),
            },
        ],
        jwt: vec![
            issuer(&one, super::support::ISSUER, ""),
            issuer(&other, OTHER, "other:"),
        ],
        admins: vec![
            AdminSettings::named("robot"),
            AdminSettings::named("other:root"),
            AdminSettings {
                principal: "root".to_owned(),
                issuer: Some(super::support::ISSUER.to_owned()),
            },
        ],
    };
    let identities = Identities::load(&settings).await.unwrap();
    let of_one = |sub: &str| one.token(&claims_with(&json!({"sub": sub})));
    let of_other = |sub: &str| other.token(&claims_with(&json!({"sub": sub, "iss": OTHER})));
    let named = |name: &str, admin: bool| Ok((name.to_owned(), admin));
    for (token, expected) in [
        (of_one("alice"), named("alice", false)),
        (of_one("root"), named("root", true)),
        (of_other("alice"), named("other:alice", false)),
        (of_other("root"), named("other:root", true)),
        // The administrator's, the key owner's, the certificates', the anonymous and the other issuer's names.
        (
            of_one("robot"),
            Err(AuthenticationFailure::PrincipalConflict),
        ),
        (
            of_one("guest"),
            Err(AuthenticationFailure::PrincipalConflict),
        ),
        (
            of_one("builder"),
            Err(AuthenticationFailure::PrincipalConflict),
        ),
        (
            of_one("cert:host"),
            Err(AuthenticationFailure::PrincipalConflict),
        ),
        (
            of_one("other:root"),
            Err(AuthenticationFailure::PrincipalConflict),
        ),
        ("tw_robot".to_owned(), named("robot", true)),
    ] {
        let found = identities.identify(&bearer(&token), None).await;
        if let Err(refusal) = &found {
            assert_eq!(refusal.status(), 403);
            let claimed = refusal.claimed_name().unwrap();
            assert_eq!(&*claimed.source, super::support::ISSUER);
        }
        assert_eq!(reason(found), expected, "{token}");
    }
    // Nor can a certificate.
    for (common_name, expected) in [
        ("builder-1", named("builder", false)),
        ("host", named("cert:host", false)),
    ] {
        let subject = TlsSubject {
            common_name: Some(common_name.to_owned()),
            ..TlsSubject::default()
        };
        let found = identities.identify(&HeaderMap::new(), Some(&subject)).await;
        assert_eq!(reason(found), expected, "{common_name}");
    }
    let open = IdentitySettings {
        certificates: vec![CertificateSettings {
            subject: "*".to_owned(),
            principal: "*".to_owned(),
        }],
        jwt: vec![issuer(&other, OTHER, "other:")],
        admins: Vec::new(),
        ..settings
    };
    let identities = Identities::load(&open).await.unwrap();
    for (common_name, expected) in [
        ("host", named("host", false)),
        ("robot", Err(AuthenticationFailure::PrincipalConflict)),
        ("other:root", Err(AuthenticationFailure::PrincipalConflict)),
    ] {
        let subject = TlsSubject {
            common_name: Some(common_name.to_owned()),
            ..TlsSubject::default()
        };
        let found = identities.identify(&HeaderMap::new(), Some(&subject)).await;
        assert_eq!(reason(found), expected, "{common_name}");
    }
}

#[tokio::test]
async fn a_bound_token_needs_its_certificate() {
    let signer = Signer::es256();
    let identities = with_issuer(jwt(JwtKeys::PublicKey(signer.pem())), Timing::default());
    let thumbprint = |certificate: &[u8]| URL_SAFE_NO_PAD.encode(Sha256::digest(certificate));
    let connection = |certificate: &[u8]| TlsSubject {
        thumbprint: thumbprint(certificate),
        ..TlsSubject::default()
    };
    let bound = json!({"x5t#S256": thumbprint(b"mine")});
    let both = json!({"x5t#S256": thumbprint(b"mine"), "jkt": "key"});
    for (confirmation, certificate, expected) in [
        (bound.clone(), Some(&b"mine"[..]), Ok(())),
        (
            bound.clone(),
            Some(b"yours"),
            Err(AuthenticationFailure::Binding),
        ),
        (bound, None, Err(AuthenticationFailure::Binding)),
        // Bindings that are not checked here.
        (
            json!({"jkt": "key"}),
            Some(b"mine"),
            Err(AuthenticationFailure::Binding),
        ),
        (both, Some(b"mine"), Err(AuthenticationFailure::Binding)),
        (
            json!({}),
            Some(b"mine"),
            Err(AuthenticationFailure::Binding),
        ),
        (
            json!("x"),
            Some(b"mine"),
            Err(AuthenticationFailure::Binding),
        ),
        (Value::Null, None, Err(AuthenticationFailure::Binding)),
    ] {
        let token = signer.token(&claims_with(&json!({"cnf": confirmation})));
        let subject = certificate.map(connection);
        // The second time the token is known.
        for _ in 0..2 {
            let found = identities.identify(&bearer(&token), subject.as_ref()).await;
            let found = found.map(drop).map_err(|refusal| refusal.reason());
            assert_eq!(found, expected, "{confirmation}");
        }
    }
}

#[tokio::test]
async fn claims_give_roles() {
    let signer = Signer::es256();
    let given = |claim: &str| {
        let mut settings = jwt(JwtKeys::PublicKey(signer.pem()));
        let roles = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect();
        settings.roles = Some(RoleClaim {
            claim: claim.to_owned(),
            map: BTreeMap::from([
                ("admins".to_owned(), roles(&["clerk", "chief"])),
                ("staff".to_owned(), roles(&["clerk"])),
            ]),
        });
        with_issuer(settings, Timing::default())
    };
    for (claim, changes, expected) in [
        (
            "groups",
            json!({"groups": ["staff", "guests"]}),
            &["clerk"][..],
        ),
        (
            "groups",
            json!({"groups": ["staff", "admins"]}),
            &["chief", "clerk"],
        ),
        ("groups", json!({"groups": "admins"}), &["chief", "clerk"]),
        ("scope", json!({"scope": "read staff"}), &["clerk"]),
        ("groups", json!({"groups": {"staff": true}}), &[]),
        ("groups", json!({"groups": [["staff"]]}), &[]),
        ("groups", json!({}), &[]),
        (
            "/realm_access/roles",
            json!({"realm_access": {"roles": ["staff"]}}),
            &["clerk"],
        ),
        (
            "/realm_access/roles",
            json!({"/realm_access/roles": ["staff"]}),
            &[],
        ),
        ("/groups", json!({"groups": ["staff"]}), &["clerk"]),
    ] {
        let identities = given(claim);
        let token = signer.token(&claims_with(&changes));
        let found = identities.identify(&bearer(&token), None).await.unwrap();
        let claims = found.claims.unwrap();
        let roles: Vec<&str> = claims.roles.iter().map(|it| &**it).collect();
        assert_eq!(roles, expected, "{claim}: {changes}");
        assert_eq!(claims.issuer.as_deref(), Some(super::support::ISSUER));
    }
}

#[tokio::test]
async fn long_signatures_need_long_secrets() {
    use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
    for (algorithm, least) in [
        (Algorithm::HS256, 32),
        (Algorithm::HS384, 48),
        (Algorithm::HS512, 64),
    ] {
        for length in [32, 47, 48, 63, 64] {
            let secret = "s".repeat(length);
            let identities = with_issuer(jwt(JwtKeys::Secret(secret.clone())), Timing::default());
            let key = EncodingKey::from_secret(secret.as_bytes());
            let token = encode(&Header::new(algorithm), &claims(), &key).unwrap();
            let found = reason(identities.identify(&bearer(&token), None).await);
            let expected = match length >= least {
                true => Ok(("jwt:alice".to_owned(), false)),
                false => Err(AuthenticationFailure::Algorithm),
            };
            assert_eq!(found, expected, "{algorithm:?} {length}");
        }
    }
}

#[tokio::test]
async fn withdrawn_keys_stop_working_within_the_refresh_time() {
    use std::time::Duration;
    let (first, second) = (Signer::es256(), Signer::es256());
    let issuer = Issuer::start().await;
    issuer.show(&[first.jwk("one"), second.jwk("two")]);
    let timing = Timing {
        refresh: Duration::from_millis(100),
        between: Duration::from_millis(10),
        ..Timing::default()
    };
    let identities = with_issuer(jwt(issuer.keys()), timing);
    let (one, two) = (
        first.token_by("one", &claims()),
        second.token_by("two", &claims()),
    );
    let works = async |token: &str| identities.identify(&bearer(token), None).await.is_ok();
    assert!(works(&one).await && works(&two).await);
    issuer.show(&[second.jwk("two")]);
    while works(&one).await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(works(&two).await);
    // A set without any key withdraws all of them; it is not a temporary failure.
    issuer.show(&[]);
    while works(&two).await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn credentials_are_checked_again_when_the_settings_change() {
    let signer = Signer::es256();
    let key = |principal: &str| ApiKeySettings {
        principal: principal.to_owned(),
        sha256: ApiKey::digest_of(&format!("tw_{principal}")),
    };
    let settings = IdentitySettings {
        api_keys: vec![key("one"), key("two")],
        jwt: vec![jwt(JwtKeys::PublicKey(signer.pem()))],
        admins: vec![AdminSettings::named("two")],
        ..IdentitySettings::default()
    };
    let identities = Identities::load(&settings).await.unwrap();
    let mut callers = Vec::new();
    for token in ["tw_one", "tw_two", &signer.token(&claims())] {
        callers.push(identities.identify(&bearer(token), None).await.unwrap());
    }
    let accepted = async |settings: &IdentitySettings| -> Vec<bool> {
        let identities = identities.reload(settings).await.unwrap();
        callers
            .iter()
            .map(|it| identities.still_accepts(it))
            .collect()
    };
    assert_eq!(accepted(&settings).await, [true, true, true]);
    let mut changed = settings.clone();
    changed.api_keys.remove(0);
    assert_eq!(accepted(&changed).await, [false, true, true]);
    let mut changed = settings.clone();
    changed.admins.clear();
    assert_eq!(accepted(&changed).await, [true, false, true]);
    let mut changed = settings.clone();
    changed.jwt.clear();
    assert_eq!(accepted(&changed).await, [true, true, false]);
    let mut changed = settings.clone();
    changed.jwt[0].audience = "another".to_owned();
    assert_eq!(accepted(&changed).await, [true, true, false]);
    let mut changed = settings;
    changed.jwt[0].refresh *= 2;
    assert_eq!(accepted(&changed).await, [true, true, true]);
}

#[tokio::test]
async fn a_name_that_another_issuer_took_over_is_no_longer_accepted() {
    let (one, other) = (Signer::es256(), Signer::eddsa());
    let settings = IdentitySettings {
        jwt: vec![issuer(&one, super::support::ISSUER, "")],
        ..IdentitySettings::default()
    };
    let identities = Identities::load(&settings).await.unwrap();
    let mut callers = Vec::new();
    for sub in ["alice", "other:alice"] {
        let token = one.token(&claims_with(&json!({"sub": sub})));
        callers.push(identities.identify(&bearer(&token), None).await.unwrap());
    }
    let mut changed = settings;
    changed.jwt.push(issuer(&other, OTHER, "other:"));
    let identities = identities.reload(&changed).await.unwrap();
    let accepted: Vec<bool> = callers
        .iter()
        .map(|it| identities.still_accepts(it))
        .collect();
    assert_eq!(accepted, [true, false]);
}
