//! Signatures at the edges, after the cases that Wycheproof collects for ECDSA (P1363), EdDSA, RSA and JWS. The
//! crate `jsonwebtoken` gives a second opinion on each.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::{Value, json};

use super::support::{
    AUDIENCE, ISSUER, Issuer, Signer, claims, encoded, jwt, name_of, with_issuer,
};
use crate::identity::{Identities, Timing};

/// The order of the group of P-256.
const P256_ORDER: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
/// The prime of the field of P-256.
const P256_PRIME: &str = "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff";
/// The order of the group of Ed25519, little-endian.
const ED25519_ORDER: &str = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// One number minus another, both big-endian and of one length.
fn minus(one: &[u8], other: &[u8]) -> Vec<u8> {
    let mut borrow = 0_i32;
    let mut difference: Vec<u8> = one
        .iter()
        .zip(other)
        .rev()
        .map(|(one, other)| {
            let digit = i32::from(*one) - i32::from(*other) - borrow;
            borrow = i32::from(digit < 0);
            u8::try_from(digit.rem_euclid(256)).unwrap()
        })
        .collect();
    difference.reverse();
    difference
}

/// The sum of two numbers, both little-endian and of one length.
fn plus(one: &[u8], other: &[u8]) -> Vec<u8> {
    let mut carry = 0_u32;
    let digits = one.iter().zip(other).map(|(one, other)| {
        let digit = u32::from(*one) + u32::from(*other) + carry;
        carry = digit / 256;
        u8::try_from(digit % 256).unwrap()
    });
    digits.collect()
}

/// A signature as ASN.1 has it.
fn der(r: &[u8], s: &[u8]) -> Vec<u8> {
    let number = |digits: &[u8]| {
        let digits = [&[0], digits].concat();
        let length = u8::try_from(digits.len()).unwrap();
        [&[2, length], digits.as_slice()].concat()
    };
    let numbers = [number(r), number(s)].concat();
    [
        &[0x30, u8::try_from(numbers.len()).unwrap()],
        numbers.as_slice(),
    ]
    .concat()
}

/// What both say of a token: the gateway, then the other crate.
async fn opinions(
    identities: &Identities,
    key: &DecodingKey,
    algorithm: Algorithm,
    token: &str,
) -> (bool, bool) {
    let mut validation = Validation::new(algorithm);
    validation.set_audience(&[AUDIENCE]);
    validation.set_issuer(&[ISSUER]);
    let theirs = jsonwebtoken::decode::<Value>(token, key, &validation).is_ok();
    (name_of(identities, token).await.is_ok(), theirs)
}

fn split(token: &str) -> (String, Vec<u8>) {
    let (signed, signature) = token.rsplit_once('.').unwrap();
    (
        signed.to_owned(),
        URL_SAFE_NO_PAD.decode(signature).unwrap(),
    )
}

fn with_signature(signed: &str, signature: &[u8]) -> String {
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

async fn trusting(keys: &[Value]) -> (Identities, Issuer) {
    let issuer = Issuer::start().await;
    issuer.answer(&[("/keys", StatusCode::OK, &json!({"keys": keys}))]);
    (with_issuer(jwt(issuer.keys()), Timing::default()), issuer)
}

#[tokio::test]
async fn ecdsa_at_the_edges() {
    let signer = Signer::es256();
    let jwk = signer.jwk("k");
    let (identities, _issuer) = trusting(std::slice::from_ref(&jwk)).await;
    let text = |name: &str| jwk[name].as_str().unwrap();
    let key = DecodingKey::from_ec_components(text("x"), text("y")).unwrap();
    let (signed, right) = split(&signer.token_by("k", &claims()));
    let (r, s) = right.split_at(32);
    let (n, p) = (bytes(P256_ORDER), bytes(P256_PRIME));
    let (zero, one, most) = (vec![0; 32], [vec![0; 31], vec![1]].concat(), vec![0xff; 32]);
    let joined = |r: &[u8], s: &[u8]| [r, s].concat();
    let cases: Vec<(&str, Vec<u8>, bool)> = vec![
        ("right", right.clone(), true),
        // The other of the two signatures that ECDSA has; tokens are not compared by their bytes.
        ("s is negated", joined(r, &minus(&n, s)), true),
        ("r is 0", joined(&zero, s), false),
        ("s is 0", joined(r, &zero), false),
        ("r and s are 0", joined(&zero, &zero), false),
        ("r and s are 1", joined(&one, &one), false),
        ("r is n", joined(&n, s), false),
        ("s is n", joined(r, &n), false),
        ("r is n, s is 1", joined(&n, &one), false),
        ("r is p", joined(&p, s), false),
        ("r and s are the most", joined(&most, &most), false),
        ("swapped", joined(s, r), false),
        ("r is negated", joined(&minus(&n, r), s), false),
        ("ASN.1", der(r, s), false),
        ("cut", right[..63].to_vec(), false),
        ("longer", joined(&right, &[0]), false),
        ("a zero before each", [&[0], r, &[0], s].concat(), false),
        ("one half", r.to_vec(), false),
        ("empty", Vec::new(), false),
    ];
    for (name, signature, expected) in cases {
        let token = with_signature(&signed, &signature);
        let found = opinions(&identities, &key, Algorithm::ES256, &token).await;
        assert_eq!(found, (expected, expected), "{name}");
    }
}

#[tokio::test]
async fn keys_that_are_no_points_check_nothing() {
    let signer = Signer::es256();
    let token = signer.token_by("k", &claims());
    let right = signer.jwk("k");
    let zeros = URL_SAFE_NO_PAD.encode([0; 32]);
    let short = URL_SAFE_NO_PAD.encode([1; 31]);
    let prime = URL_SAFE_NO_PAD.encode(bytes(P256_PRIME));
    for changes in [
        json!({"x": zeros, "y": zeros}),
        json!({"x": right["y"], "y": right["x"]}),
        json!({"x": short}),
        json!({"x": prime}),
        json!({"crv": "P-384"}),
        json!({"crv": "secp256k1"}),
        json!({"kty": "OKP"}),
        json!({"alg": "ES384"}),
        json!({"alg": "none"}),
        json!({"use": "enc"}),
        json!({"key_ops": ["sign"]}),
    ] {
        let mut jwk = right.clone();
        for (name, value) in changes.as_object().unwrap() {
            jwk[name] = value.clone();
        }
        let (identities, _issuer) = trusting(&[jwk]).await;
        assert!(name_of(&identities, &token).await.is_err(), "{changes}");
    }
    let (identities, _issuer) = trusting(&[right]).await;
    assert!(name_of(&identities, &token).await.is_ok());
}

#[tokio::test]
async fn ed25519_at_the_edges() {
    let signer = Signer::eddsa();
    let jwk = signer.jwk("k");
    let (identities, _issuer) = trusting(std::slice::from_ref(&jwk)).await;
    let key = DecodingKey::from_ed_components(jwk["x"].as_str().unwrap()).unwrap();
    let (signed, right) = split(&signer.token_by("k", &claims()));
    let (r, s) = right.split_at(32);
    let order = bytes(ED25519_ORDER);
    let joined = |r: &[u8], s: &[u8]| [r, s].concat();
    let identity = [vec![1], vec![0; 31]].concat();
    for (name, signature, expected) in [
        ("right", right.clone(), true),
        // The same number, written beyond the order of the group.
        ("s + L", joined(r, &plus(s, &order)), false),
        ("s is L", joined(r, &order), false),
        ("s is 0", joined(r, &[0; 32]), false),
        ("s is the most", joined(r, &[0xff; 32]), false),
        ("R is the identity", joined(&identity, &[0; 32]), false),
        ("swapped", joined(s, r), false),
        ("cut", right[..63].to_vec(), false),
        ("longer", joined(&right, &[0]), false),
        ("empty", Vec::new(), false),
    ] {
        let token = with_signature(&signed, &signature);
        let found = opinions(&identities, &key, Algorithm::EdDSA, &token).await;
        assert_eq!(found, (expected, expected), "{name}");
    }
}

#[tokio::test]
async fn rsa_at_the_edges() {
    let jwk: Value = serde_json::from_str(include_str!("rsa/jwk.json")).unwrap();
    let tokens: Value = serde_json::from_str(include_str!("rsa/tokens.json")).unwrap();
    let (identities, _issuer) = trusting(std::slice::from_ref(&jwk)).await;
    let text = |name: &str| jwk[name].as_str().unwrap();
    let key = DecodingKey::from_rsa_components(text("n"), text("e")).unwrap();
    let modulus = URL_SAFE_NO_PAD.decode(text("n")).unwrap();
    for (name, token) in tokens.as_object().unwrap() {
        let Ok(algorithm) = name.parse::<Algorithm>() else {
            continue;
        };
        let (signed, right) = split(token.as_str().unwrap());
        let size = right.len();
        let number = |last: u8| [vec![0; size - 1], vec![last]].concat();
        for (case, signature, expected) in [
            ("right", right.clone(), true),
            ("0", number(0), false),
            ("1", number(1), false),
            ("n", modulus.clone(), false),
            ("n - 1", minus(&modulus, &number(1)), false),
            ("n - s", minus(&modulus, &right), false),
            ("a zero before", [&[0], right.as_slice()].concat(), false),
            ("a zero behind", [right.as_slice(), &[0]].concat(), false),
            ("cut", right[..size - 1].to_vec(), false),
            ("empty", Vec::new(), false),
        ] {
            let token = with_signature(&signed, &signature);
            let found = opinions(&identities, &key, algorithm, &token).await;
            assert_eq!(found, (expected, expected), "{name}: {case}");
        }
    }
}

#[tokio::test]
async fn forms_that_are_no_compact_tokens() {
    let signer = Signer::es256();
    let jwk = signer.jwk("k");
    let (identities, _issuer) = trusting(std::slice::from_ref(&jwk)).await;
    let text = |name: &str| jwk[name].as_str().unwrap();
    let key = DecodingKey::from_ec_components(text("x"), text("y")).unwrap();
    let token = signer.token_by("k", &claims());
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (header, payload) = signed.split_once('.').unwrap();
    let raw = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let none = encoded(&json!({"alg": "none"}));
    let flattened = json!({"protected": header, "payload": payload, "signature": signature});
    for form in [
        format!("{header}.{payload}"),
        format!("{header}.{payload}."),
        format!("{header}..{signature}"),
        format!(".{payload}.{signature}"),
        format!("{none}.{payload}."),
        format!("{none}.{payload}.{signature}"),
        format!("{token}.{signature}"),
        format!("{token}."),
        format!("{header}.{payload}.{}", URL_SAFE.encode(&raw)),
        format!("{header}.{payload}.{signature}="),
        format!("{header}.{payload}. {signature}"),
        format!("{header}.{payload}.\u{a0}{signature}"),
        flattened.to_string(),
    ] {
        // A blank before the end is cut off with the header, so that it is put within.
        let found = opinions(&identities, &key, Algorithm::ES256, &form);
        let is_text = form.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if is_text {
            assert_eq!(found.await, (false, false), "{form}");
        }
    }
    // Extensions that have to be understood, and keys that a token brings with it.
    let header = |changes: Value| {
        let mut header = json!({"alg": "ES256", "kid": "k"});
        for (name, value) in changes.as_object().unwrap() {
            header[name] = value.clone();
        }
        signer.token_with(&header, &claims())
    };
    for changes in [
        json!({"crit": ["b64"], "b64": false}),
        json!({"crit": []}),
        json!({"kid": "another"}),
        json!({"typ": "dpop+jwt"}),
        json!({"alg": "ES384"}),
        json!({"alg": "es256"}),
    ] {
        let token = header(changes.clone());
        assert!(name_of(&identities, &token).await.is_err(), "{changes}");
    }
    let forger = Signer::es256();
    for changes in [
        json!({"alg": "ES256", "kid": "k", "jwk": forger.jwk("k")}),
        json!({"alg": "ES256", "kid": "k", "jku": "http://127.0.0.1:1/keys"}),
        json!({"alg": "ES256", "jwk": forger.jwk("k")}),
    ] {
        let token = forger.token_with(&changes, &claims());
        let found = opinions(&identities, &key, Algorithm::ES256, &token).await;
        assert_eq!(found, (false, false), "{changes}");
    }
}
