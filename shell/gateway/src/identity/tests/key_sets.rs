//! Keys over the network: rotated, withdrawn, out of reach.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::time::sleep;
use toolwarden_settings::{IdentitySettings, JwtKeys};

use super::support::{Issuer, Signer, claims, claims_with, jwt, name_of, with_issuer};
use crate::identity::{AuthenticationFailure, IssuerHealth, Timing};

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(50);

/// Fetched at most once, by the first request.
fn once() -> Timing {
    Timing {
        refresh: LONG,
        between: LONG,
        ..Timing::default()
    }
}

/// Fetched on every request, but not on a schedule.
fn on_demand() -> Timing {
    Timing {
        refresh: LONG,
        between: Duration::ZERO,
        ..Timing::default()
    }
}

#[tokio::test]
async fn keys_of_a_set_check_tokens_by_name() {
    let issuer = Issuer::start().await;
    let (one, two, secret) = (Signer::es256(), Signer::eddsa(), Signer::Hs256(vec![7; 32]));
    let mut rsa: Value = serde_json::from_str(include_str!("rsa/jwk.json")).unwrap();
    let tokens: Value = serde_json::from_str(include_str!("rsa/tokens.json")).unwrap();
    rsa["alg"] = json!("RS256");
    let mut encryption = two.jwk("enc");
    encryption["use"] = json!("enc");
    issuer.show(&[
        one.jwk("one"),
        two.jwk("two"),
        // Of no use, each for another reason; a set with them is still one.
        secret.jwk("secret"),
        encryption,
        json!({"kty": "EC", "crv": "P-521", "kid": "five"}),
        json!({"kty": "RSA", "kid": "small", "n": "AQAB", "e": "AQAB"}),
        json!("not a key"),
        rsa,
    ]);
    let identities = with_issuer(jwt(issuer.keys()), once());
    let alice = || Ok("jwt:alice".to_owned());
    for (token, expected) in [
        (one.token_by("one", &claims()), alice()),
        (two.token_by("two", &claims()), alice()),
        (tokens["RS256"].as_str().unwrap().to_owned(), alice()),
        // A key that is for one algorithm is for no other.
        (
            tokens["PS256"].as_str().unwrap().to_owned(),
            Err(AuthenticationFailure::Algorithm),
        ),
        (one.token(&claims()), alice()),
        (
            one.token_by("two", &claims()),
            Err(AuthenticationFailure::Algorithm),
        ),
        (
            two.token_by("one", &claims()),
            Err(AuthenticationFailure::Algorithm),
        ),
        (
            two.token_by("enc", &claims()),
            Err(AuthenticationFailure::UnknownKey),
        ),
        (
            secret.token_by("secret", &claims()),
            Err(AuthenticationFailure::UnknownKey),
        ),
        (
            one.token_by("none", &claims()),
            Err(AuthenticationFailure::UnknownKey),
        ),
        (
            Signer::es256().token_by("one", &claims()),
            Err(AuthenticationFailure::Signature),
        ),
    ] {
        assert_eq!(name_of(&identities, &token).await, expected, "{token}");
    }
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn a_new_key_is_fetched_when_a_token_names_it() {
    let issuer = Issuer::start().await;
    let (old, new) = (Signer::es256(), Signer::es256());
    issuer.show(&[old.jwk("old")]);
    let identities = with_issuer(jwt(issuer.keys()), on_demand());
    let (by_old, by_new) = (
        old.token_by("old", &claims()),
        new.token_by("new", &claims()),
    );
    assert_eq!(
        name_of(&identities, &by_old).await.as_deref(),
        Ok("jwt:alice")
    );
    assert_eq!(
        name_of(&identities, &by_new).await,
        Err(AuthenticationFailure::UnknownKey)
    );
    issuer.show(&[new.jwk("new")]);
    assert_eq!(
        name_of(&identities, &by_new).await.as_deref(),
        Ok("jwt:alice")
    );
    // A withdrawn key invalidates its tokens, including those that were verified before.
    assert_eq!(
        name_of(&identities, &by_old).await,
        Err(AuthenticationFailure::UnknownKey)
    );
}

#[tokio::test]
async fn unknown_keys_do_not_make_many_requests() {
    let issuer = Issuer::start().await;
    let signer = Signer::es256();
    issuer.show(&[signer.jwk("one")]);
    let timing = Timing {
        between: Duration::from_secs(2),
        ..once()
    };
    let identities = with_issuer(jwt(issuer.keys()), timing);
    name_of(&identities, &signer.token_by("one", &claims()))
        .await
        .unwrap();
    for number in 0..50 {
        let token = signer.token_by(&format!("key-{number}"), &claims());
        assert_eq!(
            name_of(&identities, &token).await,
            Err(AuthenticationFailure::UnknownKey)
        );
    }
    assert_eq!(issuer.fetches(), 1);
    sleep(Duration::from_millis(2_100)).await;
    for number in 0..50 {
        let token = signer.token_by(&format!("key-{number}"), &claims());
        assert_eq!(
            name_of(&identities, &token).await,
            Err(AuthenticationFailure::UnknownKey)
        );
    }
    assert_eq!(issuer.fetches(), 2);
}

#[tokio::test]
async fn an_issuer_that_is_down_is_tried_again() {
    let issuer = Issuer::start().await;
    let signer = Signer::es256();
    let token = signer.token_by("one", &claims());
    let timing = Timing {
        between: SHORT,
        ..once()
    };
    let identities = with_issuer(jwt(issuer.keys()), timing);
    assert_eq!(
        name_of(&identities, &token).await,
        Err(AuthenticationFailure::Unavailable)
    );
    assert_eq!(
        identities.issuers(),
        [IssuerHealth {
            issuer: "https://issuer.example".to_owned(),
            usable: false,
            failure: Some(format!("{}/keys answered 404 Not Found", issuer.url)),
        }]
    );
    issuer.show(&[signer.jwk("one")]);
    wait_until_usable(&identities).await;
    assert_eq!(
        name_of(&identities, &token).await.as_deref(),
        Ok("jwt:alice")
    );
}

#[tokio::test]
async fn old_keys_are_good_for_a_while_when_no_newer_can_be_had() {
    let issuer = Issuer::start().await;
    let signer = Signer::es256();
    issuer.show(&[signer.jwk("one")]);
    let timing = Timing {
        refresh: SHORT,
        between: Duration::ZERO,
        max_age: Duration::from_secs(2),
        ..Timing::default()
    };
    let identities = with_issuer(jwt(issuer.keys()), timing);
    let token = signer.token_by("one", &claims());
    name_of(&identities, &token).await.unwrap();
    issuer.answer(&[]);
    sleep(Duration::from_millis(500)).await;
    assert_eq!(
        name_of(&identities, &token).await.as_deref(),
        Ok("jwt:alice")
    );
    let health = identities.issuers();
    assert_eq!(
        health
            .iter()
            .map(|it| (it.usable, it.failure.is_some()))
            .collect::<Vec<_>>(),
        [(true, true)]
    );
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        name_of(&identities, &token).await,
        Err(AuthenticationFailure::Unavailable)
    );
}

#[tokio::test]
async fn keys_outlive_a_change_of_the_settings() {
    let issuer = Issuer::start().await;
    let signer = Signer::es256();
    issuer.show(&[signer.jwk("one")]);
    let identities = with_issuer(jwt(issuer.keys()), once());
    let token = signer.token_by("one", &claims());
    name_of(&identities, &token).await.unwrap();
    issuer.answer(&[]);
    let mut changed = jwt(issuer.keys());
    changed.principal_prefix = "other:".to_owned();
    let settings = IdentitySettings {
        jwt: vec![changed],
        ..IdentitySettings::default()
    };
    let reloaded = identities.reload(&settings).await.unwrap();
    drop(identities);
    assert_eq!(
        name_of(&reloaded, &token).await.as_deref(),
        Ok("other:alice")
    );
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn a_hanging_issuer_does_not_hang_the_caller() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let timing = Timing {
        timeout: SHORT,
        ..once()
    };
    let identities = with_issuer(jwt(JwtKeys::Jwks(url)), timing);
    let token = Signer::es256().token(&claims());
    assert_eq!(
        name_of(&identities, &token).await,
        Err(AuthenticationFailure::Unavailable)
    );
    let failure = identities.issuers().remove(0).failure;
    assert_eq!(failure.as_deref(), Some("no answer within 50ms"));
}

#[tokio::test]
async fn keys_are_discovered_where_either_standard_puts_them() {
    let openid = "/realm/.well-known/openid-configuration";
    let oauth = "/.well-known/oauth-authorization-server/realm";
    let signer = Signer::es256();
    let keys = json!({"keys": [signer.jwk("one")]});
    let mut outcomes = Vec::new();
    for (place, named, key_set) in [
        (openid, "/realm", "/keys"),
        (oauth, "/realm", "/keys"),
        (openid, "/other", "/keys"),
        ("/.well-known/else", "/realm", "/keys"),
        (openid, "/realm", "/nowhere"),
    ] {
        let issuer = Issuer::start().await;
        let description = json!({
            "issuer": format!("{}{named}", issuer.url),
            "jwks_uri": format!("{}{key_set}", issuer.url),
        });
        issuer.answer(&[
            (place, StatusCode::OK, &description),
            ("/keys", StatusCode::OK, &keys),
        ]);
        let mut settings = jwt(JwtKeys::Discovery);
        let name = format!("{}/realm", issuer.url);
        settings.issuer = Some(name.clone());
        let identities = with_issuer(settings, once());
        let token = signer.token_by("one", &claims_with(&json!({"iss": name})));
        let found = name_of(&identities, &token).await;
        let failure = identities.issuers().remove(0).failure;
        let failure = failure.map(|text| text.replace(&issuer.url, "ISSUER"));
        outcomes.push((found, failure));
    }
    let alice = || Ok("jwt:alice".to_owned());
    let unavailable = |text: &str| {
        (
            Err(AuthenticationFailure::Unavailable),
            Some(text.to_owned()),
        )
    };
    assert_eq!(
        outcomes,
        [
            (alice(), None),
            (alice(), None),
            unavailable(
                "ISSUER/realm/.well-known/openid-configuration describes the issuer `ISSUER/other`, not `ISSUER/realm`"
            ),
            unavailable("ISSUER/realm/.well-known/openid-configuration answered 404 Not Found"),
            unavailable("ISSUER/nowhere answered 404 Not Found"),
        ]
    );
}

async fn wait_until_usable(identities: &crate::identity::Identities) {
    for _ in 0..200 {
        if identities.issuers().iter().all(|issuer| issuer.usable) {
            return;
        }
        sleep(SHORT).await;
    }
    panic!("the issuer stays unusable");
}
