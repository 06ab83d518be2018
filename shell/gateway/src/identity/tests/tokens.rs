//! Which tokens pass.

use std::collections::BTreeMap;

use serde_json::json;
use toolwarden_settings::JwtKeys;

use super::support::{
    AUDIENCE, ISSUER, Signer, claims, claims_with, encoded, jwt, name_of, now, with_issuer,
};
use crate::identity::api_key::Digest;
use crate::identity::{AuthenticationFailure, Timing};

const RSA_PEM: &str = include_str!("rsa/public.pem");
const RSA_TOKENS: &str = include_str!("rsa/tokens.json");

#[tokio::test]
async fn claims_are_checked() {
    let signer = Signer::es256();
    let mut settings = jwt(JwtKeys::PublicKey(signer.pem()));
    settings.scopes = vec!["tools".to_owned(), "read".to_owned()];
    let identities = with_issuer(settings, Timing::default());
    let granted = json!({"scope": "read extra tools"});
    let alice = || Ok("jwt:alice".to_owned());
    let now = now();
    for (changes, expected) in [
        (json!({}), alice()),
        (json!({"aud": ["other", AUDIENCE]}), alice()),
        (json!({"scope": null, "scp": ["tools", "read"]}), alice()),
        (json!({"scope": null, "scp": "tools read"}), alice()),
        (json!({"nbf": now}), alice()),
        // Within the leeway.
        (json!({"exp": now - 2}), alice()),
        (json!({"nbf": now + 2}), alice()),
        (json!({"exp": 4e9}), alice()),
        (
            json!({"exp": now - 60}),
            Err(AuthenticationFailure::Expired),
        ),
        (json!({"exp": -1}), Err(AuthenticationFailure::Expired)),
        (
            json!({"nbf": now + 60}),
            Err(AuthenticationFailure::NotYetValid),
        ),
        // A value that is not a time is not skipped.
        (
            json!({"exp": (now + 600).to_string()}),
            Err(AuthenticationFailure::Malformed),
        ),
        (json!({"exp": null}), Err(AuthenticationFailure::Malformed)),
        (
            json!({"nbf": "never"}),
            Err(AuthenticationFailure::Malformed),
        ),
        (
            json!({"iss": "https://evil.example"}),
            Err(AuthenticationFailure::Issuer),
        ),
        (
            json!({"iss": format!("{ISSUER}/")}),
            Err(AuthenticationFailure::Issuer),
        ),
        (json!({"iss": [ISSUER]}), Err(AuthenticationFailure::Issuer)),
        (
            json!({"aud": "other"}),
            Err(AuthenticationFailure::Audience),
        ),
        (json!({"aud": []}), Err(AuthenticationFailure::Audience)),
        (json!({"aud": null}), Err(AuthenticationFailure::Audience)),
        (
            json!({"aud": {"gateway": 1}}),
            Err(AuthenticationFailure::Audience),
        ),
        (
            json!({"scope": "read toolsmith"}),
            Err(AuthenticationFailure::Scope),
        ),
        (json!({"scope": null}), Err(AuthenticationFailure::Scope)),
        (json!({"sub": null}), Err(AuthenticationFailure::Principal)),
        (json!({"sub": ""}), Err(AuthenticationFailure::Principal)),
        (json!({"sub": 7}), Err(AuthenticationFailure::Principal)),
        (
            json!({"sub": "al\nice"}),
            Err(AuthenticationFailure::Principal),
        ),
        // Names that look like alice in the log.
        (
            json!({"sub": "alice "}),
            Err(AuthenticationFailure::Principal),
        ),
        (
            json!({"sub": "\u{a0}alice"}),
            Err(AuthenticationFailure::Principal),
        ),
        (
            json!({"sub": "ali\u{200b}ce"}),
            Err(AuthenticationFailure::Principal),
        ),
        (
            json!({"sub": "\u{202e}ecila"}),
            Err(AuthenticationFailure::Principal),
        ),
        (
            json!({"sub": "a".repeat(300)}),
            Err(AuthenticationFailure::Principal),
        ),
    ] {
        let mut claims = claims_with(&granted);
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let found = name_of(&identities, &signer.token(&claims)).await;
        assert_eq!(found, expected, "{changes}");
    }
    let mut endless = claims_with(&granted);
    endless.as_object_mut().unwrap().remove("exp");
    let found = name_of(&identities, &signer.token(&endless)).await;
    assert_eq!(found, Err(AuthenticationFailure::Expired));
}

#[tokio::test]
async fn a_token_of_which_anything_was_changed_is_refused() {
    for signer in [
        Signer::es256(),
        Signer::eddsa(),
        Signer::Hs256(vec![b'k'; 32]),
    ] {
        let keys = match &signer {
            Signer::Hs256(_) => JwtKeys::Secret("k".repeat(32)),
            Signer::Es256(_) | Signer::EdDsa(_) => JwtKeys::PublicKey(signer.pem()),
        };
        let identities = with_issuer(jwt(keys), Timing::default());
        let token = signer.token(&claims());
        assert_eq!(
            name_of(&identities, &token).await.as_deref(),
            Ok("jwt:alice")
        );
        for place in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(name_of(&identities, &changed).await.is_err(), "{changed}");
        }
        for cut in 0..token.len() {
            assert!(
                name_of(&identities, token.get(..cut).unwrap())
                    .await
                    .is_err()
            );
        }
    }
}

#[tokio::test]
async fn the_key_decides_on_the_algorithm() {
    let signer = Signer::es256();
    let pem = signer.pem();
    let identities = with_issuer(jwt(JwtKeys::PublicKey(pem.clone())), Timing::default());
    // The public key is not secret: if it were accepted as a shared secret, anyone could sign.
    let forger = Signer::Hs256(pem.clone().into_bytes());
    let trimmed = Signer::Hs256(pem.trim().as_bytes().to_vec());
    let bare = |algorithm: &str| {
        let header = encoded(&json!({"alg": algorithm, "typ": "JWT"}));
        format!("{header}.{}.", encoded(&claims()))
    };
    for (token, expected) in [
        (forger.token(&claims()), AuthenticationFailure::Algorithm),
        (trimmed.token(&claims()), AuthenticationFailure::Algorithm),
        (bare("none"), AuthenticationFailure::Algorithm),
        (bare("None"), AuthenticationFailure::Algorithm),
        (bare("nOnE"), AuthenticationFailure::Algorithm),
        (bare(""), AuthenticationFailure::Algorithm),
        (bare("ES256"), AuthenticationFailure::Signature),
        (bare("HS256"), AuthenticationFailure::Algorithm),
        (
            Signer::es256().token(&claims()),
            AuthenticationFailure::Signature,
        ),
        (
            Signer::eddsa().token(&claims()),
            AuthenticationFailure::Algorithm,
        ),
        (
            signer.token_with(&json!({"alg": "ES384"}), &claims()),
            AuthenticationFailure::Algorithm,
        ),
        (
            signer.token_with(&json!({"alg": "ES256", "crit": ["exp"]}), &claims()),
            AuthenticationFailure::Malformed,
        ),
        (
            signer.token_with(&json!({"alg": "ES256", "typ": "logout+jwt"}), &claims()),
            AuthenticationFailure::Malformed,
        ),
        ("a.b.c".to_owned(), AuthenticationFailure::Malformed),
        ("a.b".to_owned(), AuthenticationFailure::Malformed),
        (
            format!("{}.{}", "a".repeat(20_000), "b.c"),
            AuthenticationFailure::Malformed,
        ),
    ] {
        assert_eq!(name_of(&identities, &token).await, Err(expected), "{token}");
    }
    let access = json!({"alg": "ES256", "typ": "at+JWT"});
    let found = name_of(&identities, &signer.token_with(&access, &claims())).await;
    assert_eq!(found.as_deref(), Ok("jwt:alice"));
}

#[tokio::test]
async fn rsa_signatures_of_both_paddings_pass() {
    let tokens: BTreeMap<String, String> = serde_json::from_str(RSA_TOKENS).unwrap();
    let names: Vec<&str> = tokens.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["PS256", "PS384", "PS512", "RS256", "RS384", "RS512"]
    );
    let identities = with_issuer(
        jwt(JwtKeys::PublicKey(RSA_PEM.to_owned())),
        Timing::default(),
    );
    for token in tokens.values() {
        let found = name_of(&identities, token).await;
        assert_eq!(found.as_deref(), Ok("jwt:alice"));
    }
    let forged = Signer::Hs256(RSA_PEM.into()).token(&claims());
    let found = name_of(&identities, &forged).await;
    assert_eq!(found, Err(AuthenticationFailure::Algorithm));
    let (one, other) = (&tokens["RS256"], &tokens["RS384"]);
    let (_, signature) = other.rsplit_once('.').unwrap();
    let (signed, _) = one.rsplit_once('.').unwrap();
    let found = name_of(&identities, &format!("{signed}.{signature}")).await;
    assert_eq!(found, Err(AuthenticationFailure::Signature));
}

#[tokio::test]
async fn issuers_are_told_apart() {
    let (one, other) = (Signer::es256(), Signer::es256());
    let mut second = jwt(JwtKeys::PublicKey(other.pem()));
    second.issuer = Some("https://other.example".to_owned());
    second.principal_prefix = "other:".to_owned();
    let settings = toolwarden_settings::IdentitySettings {
        jwt: vec![jwt(JwtKeys::PublicKey(one.pem())), second],
        ..Default::default()
    };
    let identities = crate::identity::Identities::load(&settings).await.unwrap();
    let of_other = claims_with(&json!({"iss": "https://other.example"}));
    for (token, expected) in [
        (one.token(&claims()), Ok("jwt:alice".to_owned())),
        (other.token(&of_other), Ok("other:alice".to_owned())),
        // One issuer does not sign for another.
        (one.token(&of_other), Err(AuthenticationFailure::Signature)),
        (
            other.token(&claims()),
            Err(AuthenticationFailure::Signature),
        ),
    ] {
        assert_eq!(name_of(&identities, &token).await, expected);
    }
}

#[tokio::test]
async fn a_token_is_checked_once_and_forgotten_when_it_expires() {
    let signer = Signer::es256();
    let identities = with_issuer(jwt(JwtKeys::PublicKey(signer.pem())), Timing::default());
    let end = now() + 100;
    let token = signer.token(&claims_with(&json!({"exp": end})));
    let digest = Digest::of(&token);
    let remembered = |at: u64| {
        let at = i64::try_from(at).unwrap();
        identities.issuers.find_cached(&digest, at)
    };
    let name = |at: u64| remembered(at).map(|it| it.token.principal.to_string());
    assert!(remembered(now()).is_none());
    name_of(&identities, &token).await.unwrap();
    assert_eq!(name(now()).as_deref(), Some("jwt:alice"));
    assert_eq!(name(end + 4).as_deref(), Some("jwt:alice"));
    assert!(remembered(end + 5).is_none());
}
