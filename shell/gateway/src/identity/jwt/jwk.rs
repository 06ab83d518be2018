//! Key sets as issuers publish them (RFC 7517).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

use super::key::{Algorithm, VerificationKey};

/// The most keys of a set that are used.
const MAX_KEYS: usize = 64;

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Value>,
}

/// The relevant members of a key. Members of one key type are absent in the others.
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

/// The keys of a set that can verify signatures. Others are ignored, as RFC 7517 requires: sets contain keys for
/// encryption, and of future types. `None` if the document is not a key set.
pub(super) fn parse_key_set(document: &[u8]) -> Option<Vec<VerificationKey>> {
    let JwkSet { keys } = serde_json::from_slice(document).ok()?;
    let usable = keys.into_iter().filter_map(parse_key);
    Some(usable.take(MAX_KEYS).collect())
}

fn parse_key(value: Value) -> Option<VerificationKey> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    let signs = jwk.usage.as_deref().is_none_or(|usage| usage == "sig");
    let verifies = |operations: &Vec<String>| operations.iter().any(|it| it == "verify");
    if !signs || !jwk.key_ops.as_ref().is_none_or(verifies) {
        return None;
    }
    let only = match jwk.alg.as_deref() {
        None => None,
        // A key for an unknown algorithm is useless.
        Some(name) => Some(Algorithm::from_name(name)?),
    };
    let number = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
    let point = |size| {
        let (x, y) = (number(&jwk.x)?, number(&jwk.y)?);
        let fits = x.len() == size && y.len() == size;
        fits.then(|| [&[4], x.as_slice(), y.as_slice()].concat())
    };
    // With a shared secret (`oct`) from a published set, any reader of the set could sign tokens.
    let key = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        ("RSA", _) => VerificationKey::rsa(&number(&jwk.n)?, &number(&jwk.e)?)?,
        ("EC", Some("P-256")) => VerificationKey::p256(point(32)?)?,
        ("EC", Some("P-384")) => VerificationKey::p384(point(48)?)?,
        ("OKP", Some("Ed25519")) => VerificationKey::ed25519(number(&jwk.x)?)?,
        _ => return None,
    };
    Some(key.with_id(jwk.kid, only))
}
