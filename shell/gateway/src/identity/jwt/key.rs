//! Keys that verify signatures. The type of the key decides which algorithms it is used with, never the token.

use std::fmt;

use ring::hmac;
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey};
use rustls::pki_types::pem::{PemObject as _, SectionKind};
use x509_cert::der::asn1::{ObjectIdentifier, UintRef};
use x509_cert::der::{Decode as _, Encode as _, Reader as _, SliceReader};
use x509_cert::spki::SubjectPublicKeyInfoRef;

use crate::identity::authentication_error::AuthenticationFailure;
use crate::identity::error::UnusableKey;

/// The shortest shared secret, in bytes: the length of the shortest signature (RFC 7518, 3.2).
pub(super) const MIN_SECRET_BYTES: usize = 32;

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// The signature algorithm that a token names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Hs256,
    Hs384,
    Hs512,
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

impl Algorithm {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "HS256" => Self::Hs256,
            "HS384" => Self::Hs384,
            "HS512" => Self::Hs512,
            "RS256" => Self::Rs256,
            "RS384" => Self::Rs384,
            "RS512" => Self::Rs512,
            "PS256" => Self::Ps256,
            "PS384" => Self::Ps384,
            "PS512" => Self::Ps512,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "EdDSA" | "Ed25519" => Self::EdDsa,
            _ => return None,
        })
    }
}

/// A key of an issuer.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct VerificationKey {
    id: Option<String>,
    /// The only algorithm it is for, if its issuer says so.
    algorithm: Option<Algorithm>,
    material: KeyMaterial,
}

#[derive(Clone, PartialEq, Eq)]
enum KeyMaterial {
    Secret(Vec<u8>),
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl VerificationKey {
    /// A shared secret.
    pub(super) fn from_secret(secret: &str) -> Self {
        Self::without_id(KeyMaterial::Secret(secret.as_bytes().to_vec()))
    }

    /// A public key in PEM, on its own or in a certificate.
    pub(super) fn from_pem(pem: &str) -> Result<Self, UnusableKey> {
        let section = <(SectionKind, Vec<u8>)>::from_pem_slice(pem.as_bytes());
        let (kind, der) = section.map_err(|_| UnusableKey::NotPem)?;
        match kind {
            SectionKind::PublicKey => Self::from_spki(&der),
            SectionKind::Certificate => {
                let certificate = x509_cert::Certificate::from_der(&der).ok();
                let info = certificate
                    .and_then(|it| it.tbs_certificate().subject_public_key_info().to_der().ok());
                Self::from_spki(&info.ok_or(UnusableKey::NotPem)?)
            }
            SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey => {
                Err(UnusableKey::Private)
            }
            _ => Err(UnusableKey::NotPem),
        }
    }

    /// An RSA key from its modulus and exponent.
    pub(super) fn rsa(n: &[u8], e: &[u8]) -> Option<Self> {
        let (n, e) = (without_zeros(n), without_zeros(e));
        let usable = (256..=1024).contains(&n.len()) && (1..=4).contains(&e.len());
        usable.then(|| Self::without_id(KeyMaterial::Rsa { n, e }))
    }

    /// A P-256 key from its uncompressed point.
    pub(super) fn p256(point: Vec<u8>) -> Option<Self> {
        let usable = point.len() == 65 && point.first() == Some(&4);
        usable.then(|| Self::without_id(KeyMaterial::P256(point)))
    }

    /// A P-384 key from its uncompressed point.
    pub(super) fn p384(point: Vec<u8>) -> Option<Self> {
        let usable = point.len() == 97 && point.first() == Some(&4);
        usable.then(|| Self::without_id(KeyMaterial::P384(point)))
    }

    /// An Ed25519 key.
    pub(super) fn ed25519(bytes: Vec<u8>) -> Option<Self> {
        let usable = bytes.len() == 32;
        usable.then(|| Self::without_id(KeyMaterial::Ed25519(bytes)))
    }

    /// The key with an id, restricted to one algorithm if one is given.
    pub(super) fn with_id(mut self, id: Option<String>, only: Option<Algorithm>) -> Self {
        (self.id, self.algorithm) = (id, only);
        self
    }

    pub(super) fn id(&self) -> Option<&String> {
        self.id.as_ref()
    }

    /// Whether a signature over a message was made with this key.
    pub(super) fn verify(
        &self,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), AuthenticationFailure> {
        if self.algorithm.is_some_and(|only| only != algorithm) {
            return Err(AuthenticationFailure::Algorithm);
        }
        let outcome = match &self.material {
            KeyMaterial::Secret(secret) => {
                let algorithm =
                    hmac_algorithm(algorithm).ok_or(AuthenticationFailure::Algorithm)?;
                // A secret must be at least as long as the signature (RFC 7518, 3.2).
                if secret.len() < algorithm.digest_algorithm().output_len() {
                    return Err(AuthenticationFailure::Algorithm);
                }
                hmac::verify(&hmac::Key::new(algorithm, secret), message, signature)
            }
            KeyMaterial::Rsa { n, e } => {
                let parameters =
                    rsa_parameters(algorithm).ok_or(AuthenticationFailure::Algorithm)?;
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            KeyMaterial::P256(point) if algorithm == Algorithm::Es256 => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point)
                    .verify(message, signature)
            }
            KeyMaterial::P384(point) if algorithm == Algorithm::Es384 => {
                UnparsedPublicKey::new(&signature::ECDSA_P384_SHA384_FIXED, point)
                    .verify(message, signature)
            }
            KeyMaterial::Ed25519(bytes) if algorithm == Algorithm::EdDsa => {
                UnparsedPublicKey::new(&signature::ED25519, bytes).verify(message, signature)
            }
            KeyMaterial::P256(_) | KeyMaterial::P384(_) | KeyMaterial::Ed25519(_) => {
                return Err(AuthenticationFailure::Algorithm);
            }
        };
        outcome.map_err(|_| AuthenticationFailure::Signature)
    }

    /// The key in a `SubjectPublicKeyInfo`.
    fn from_spki(der: &[u8]) -> Result<Self, UnusableKey> {
        let info = SubjectPublicKeyInfoRef::from_der(der).map_err(|_| UnusableKey::Kind)?;
        let curve = info
            .algorithm
            .parameters
            .and_then(|it| it.decode_as::<ObjectIdentifier>().ok());
        let bits = info.subject_public_key.as_bytes();
        let bytes = bits.ok_or(UnusableKey::Kind)?;
        let key = match (info.algorithm.oid, curve) {
            (RSA, _) => rsa_from_der(bytes),
            (EC, Some(P256)) => Self::p256(bytes.to_vec()),
            (EC, Some(P384)) => Self::p384(bytes.to_vec()),
            (ED25519, _) => Self::ed25519(bytes.to_vec()),
            _ => None,
        };
        key.ok_or(UnusableKey::Kind)
    }

    fn without_id(material: KeyMaterial) -> Self {
        Self {
            id: None,
            algorithm: None,
            material,
        }
    }
}

impl fmt::Debug for VerificationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Key");
        shown.field("id", &self.id).finish_non_exhaustive()
    }
}

fn hmac_algorithm(algorithm: Algorithm) -> Option<hmac::Algorithm> {
    match algorithm {
        Algorithm::Hs256 => Some(hmac::HMAC_SHA256),
        Algorithm::Hs384 => Some(hmac::HMAC_SHA384),
        Algorithm::Hs512 => Some(hmac::HMAC_SHA512),
        _ => None,
    }
}

fn rsa_parameters(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Algorithm::Rs256 => Some(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::Rs384 => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::Rs512 => Some(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::Ps256 => Some(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::Ps384 => Some(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::Ps512 => Some(&signature::RSA_PSS_2048_8192_SHA512),
        _ => None,
    }
}

/// The RSA key in PKCS #1 form.
fn rsa_from_der(der: &[u8]) -> Option<VerificationKey> {
    let mut reader = SliceReader::new(der).ok()?;
    let numbers = reader.sequence(|inner| {
        let numbers = (UintRef::decode(inner)?, UintRef::decode(inner)?);
        Ok::<_, x509_cert::der::Error>(numbers)
    });
    let (n, e) = numbers.ok()?;
    VerificationKey::rsa(n.as_bytes(), e.as_bytes())
}

fn without_zeros(number: &[u8]) -> Vec<u8> {
    let digits = number.iter().skip_while(|byte| **byte == 0);
    digits.copied().collect()
}
