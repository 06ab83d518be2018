//! Parses tokens, and separates verified claims from unverified ones.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::key::{Algorithm, VerificationKey};
use crate::identity::authentication_error::AuthenticationFailure;

/// The longest accepted token.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// A token whose signature is not verified yet.
pub(super) struct UnverifiedToken<'a> {
    algorithm: Algorithm,
    key_id: Option<String>,
    claims: Map<String, Value>,
    signing_input: &'a str,
    signature: Vec<u8>,
}

/// The claims of a token whose signature is verified. Only verification creates one.
#[derive(Clone, Copy)]
pub(super) struct VerifiedClaims<'a>(&'a Map<String, Value>);

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    /// Extensions that a verifier must understand; none are supported.
    crit: Option<Value>,
}

impl<'a> UnverifiedToken<'a> {
    /// Parses the compact form. Algorithms without a signature are unknown.
    pub(super) fn parse(text: &'a str) -> Result<Self, AuthenticationFailure> {
        if text.len() > MAX_TOKEN_BYTES {
            return Err(AuthenticationFailure::Malformed);
        }
        let (signed, signature) = text
            .rsplit_once('.')
            .ok_or(AuthenticationFailure::Malformed)?;
        let (header, claims) = signed
            .split_once('.')
            .ok_or(AuthenticationFailure::Malformed)?;
        let Header {
            alg,
            kid,
            typ,
            crit,
        } = parse_part(header)?;
        if crit.is_some() || !typ.as_deref().is_none_or(is_access_token_type) {
            return Err(AuthenticationFailure::Malformed);
        }
        Ok(Self {
            algorithm: Algorithm::from_name(&alg).ok_or(AuthenticationFailure::Algorithm)?,
            key_id: kid,
            claims: parse_part(claims)?,
            signing_input: signed,
            signature: decode_part(signature)?,
        })
    }

    /// The issuer that it claims.
    pub(super) fn claimed_issuer(&self) -> Option<&str> {
        self.claims.get("iss").and_then(Value::as_str)
    }

    /// Whether it names the key it is signed with.
    pub(super) fn names_key(&self) -> bool {
        self.key_id.is_some()
    }

    /// Whether a key of a set can be the one it names, as far as both have ids.
    pub(super) fn may_be_signed_by(&self, key: &VerificationKey) -> bool {
        match (&self.key_id, key.id()) {
            (Some(named), Some(id)) => named == id,
            _ => true,
        }
    }

    /// Verifies the signature. The key decides which algorithms are allowed.
    pub(super) fn verify(
        &self,
        key: &VerificationKey,
    ) -> Result<VerifiedClaims<'_>, AuthenticationFailure> {
        key.verify(
            self.algorithm,
            self.signing_input.as_bytes(),
            &self.signature,
        )?;
        Ok(VerifiedClaims(&self.claims))
    }
}

impl<'a> VerifiedClaims<'a> {
    pub(super) fn get(&self, claim: &str) -> Option<&'a Value> {
        self.0.get(claim)
    }
}

/// Whether a token of this type may be used for authentication. Other types are signed by the same keys: logout
/// tokens, proofs of possession.
fn is_access_token_type(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    kind == "jwt" || kind.ends_with("at+jwt")
}

fn parse_part<T: serde::de::DeserializeOwned>(part: &str) -> Result<T, AuthenticationFailure> {
    serde_json::from_slice(&decode_part(part)?).map_err(|_| AuthenticationFailure::Malformed)
}

fn decode_part(part: &str) -> Result<Vec<u8>, AuthenticationFailure> {
    let bytes = URL_SAFE_NO_PAD.decode(part);
    bytes.map_err(|_| AuthenticationFailure::Malformed)
}
