//! Key sets as issuers publish them (RFC 7517).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

use super::key::{Algorithm, Key};

/// The most keys of a set that are taken.
const MOST_KEYS: usize = 64;

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Value>,
}

/// The members of a key that matter here. Members of one kind are absent in the others.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The keys of a set that can check signatures. Others are left out, as RFC 7517 asks: sets hold keys for
/// encryption, and of kinds to come. None means that it is not a set.
pub(super) fn keys_of(document: &[u8]) -> Option<Vec<Key>> {
    let JwkSet { keys } = serde_json::from_slice(document).ok()?;
    let usable = keys.into_iter().filter_map(key_of);
    Some(usable.take(MOST_KEYS).collect())
}

fn key_of(value: Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    let signs = jwk.usage.as_deref().is_none_or(|usage| usage == "sig");
    let verifies = |operations: &Vec<String>| operations.iter().any(|it| it == "verify");
    if !signs || !jwk.key_ops.as_ref().is_none_or(verifies) {
        return None;
    }
    let only = match jwk.alg.as_deref() {
        None => None,
        // A key for an algorithm that is not known here is of no use.
        Some(name) => Some(Algorithm::named(name)?),
    };
    let number = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
    let point = |size| {
        let (x, y) = (number(&jwk.x)?, number(&jwk.y)?);
        let fits = x.len() == size && y.len() == size;
        fits.then(|| [&[4], x.as_slice(), y.as_slice()].concat())
    };
    // A shared secret (`oct`) in a published set would let everybody sign.
    let key = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        ("RSA", _) => Key::rsa(&number(&jwk.n)?, &number(&jwk.e)?)?,
        ("EC", Some("P-256")) => Key::p256(point(32)?)?,
        ("EC", Some("P-384")) => Key::p384(point(48)?)?,
        ("OKP", Some("Ed25519")) => Key::ed25519(number(&jwk.x)?)?,
        _ => return None,
    };
    Some(key.called(jwk.kid, only))
}
