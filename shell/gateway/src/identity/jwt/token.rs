//! The parts of a token, and which of them can be trusted.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::key::{Algorithm, Key};
use crate::identity::refusal::Reason;

/// The longest token that is read.
const LONGEST: usize = 16 * 1024;

/// A token whose signature was not checked yet.
pub(super) struct Token<'a> {
    algorithm: Algorithm,
    key_id: Option<String>,
    claims: Map<String, Value>,
    signed: &'a str,
    signature: Vec<u8>,
}

/// The claims of a token whose signature is right. Only checking a signature makes one.
#[derive(Clone, Copy)]
pub(super) struct Verified<'a>(&'a Map<String, Value>);

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    /// Extensions that a reader has to know; none are known here.
    crit: Option<Value>,
}

impl<'a> Token<'a> {
    /// Reads the compact form. Algorithms without a signature are not known.
    pub(super) fn parse(text: &'a str) -> Result<Self, Reason> {
        if text.len() > LONGEST {
            return Err(Reason::Malformed);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(Reason::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(Reason::Malformed)?;
        let Header {
            alg,
            kid,
            typ,
            crit,
        } = parsed(header)?;
        if crit.is_some() || !typ.as_deref().is_none_or(is_for_access) {
            return Err(Reason::Malformed);
        }
        Ok(Self {
            algorithm: Algorithm::named(&alg).ok_or(Reason::Algorithm)?,
            key_id: kid,
            claims: parsed(claims)?,
            signed,
            signature: decoded(signature)?,
        })
    }

    /// Who issued it, by its own word.
    pub(super) fn claimed_issuer(&self) -> Option<&str> {
        self.claims.get("iss").and_then(Value::as_str)
    }

    /// Whether it names the key it is signed with.
    pub(super) fn names_key(&self) -> bool {
        self.key_id.is_some()
    }

    /// Whether a key of a set is the one it names, as far as both have names.
    pub(super) fn may_be_signed_by(&self, key: &Key) -> bool {
        match (&self.key_id, key.id()) {
            (Some(named), Some(id)) => named == id,
            _ => true,
        }
    }

    /// Checks the signature. The key decides which algorithms there are.
    pub(super) fn verify(&self, key: &Key) -> Result<Verified<'_>, Reason> {
        key.verify(self.algorithm, self.signed.as_bytes(), &self.signature)?;
        Ok(Verified(&self.claims))
    }
}

impl<'a> Verified<'a> {
    pub(super) fn get(&self, claim: &str) -> Option<&'a Value> {
        self.0.get(claim)
    }
}

/// Whether a token of this type may be used to get in. Other types are signed by the same keys: logout
/// tokens, proofs of possession.
fn is_for_access(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    kind == "jwt" || kind.ends_with("at+jwt")
}

fn parsed<T: serde::de::DeserializeOwned>(part: &str) -> Result<T, Reason> {
    serde_json::from_slice(&decoded(part)?).map_err(|_| Reason::Malformed)
}

fn decoded(part: &str) -> Result<Vec<u8>, Reason> {
    let bytes = URL_SAFE_NO_PAD.decode(part);
    bytes.map_err(|_| Reason::Malformed)
}
