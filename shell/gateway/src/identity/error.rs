use thiserror::Error;
use toolwarden_http::NoCertificates;
use toolwarden_warden::settings::AmbiguousPrincipals;

/// Something configured about callers cannot be used. Secrets are not part of it.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// A key is not given as a digest.
    #[error("the key of `{principal}` has to be a SHA-256 digest: 64 hexadecimal digits")]
    KeyDigest {
        /// Whose key.
        principal: String,
    },
    /// Two principals have the same key.
    #[error("`{one}` and `{other}` have the same key")]
    SharedKey {
        /// The one.
        one: String,
        /// The other.
        other: String,
    },
    /// A shared secret is short enough to be guessed.
    #[error(
        "the secret for tokens of {issuer} is too short: at least {least} bytes, say from `openssl rand -base64 32`"
    )]
    WeakSecret {
        /// Whose tokens.
        issuer: String,
        /// The least length.
        least: usize,
    },
    /// A public key cannot be read.
    #[error("the public key for tokens of {issuer} cannot be used: {why}")]
    PublicKey {
        /// Whose tokens.
        issuer: String,
        /// What is wrong.
        why: UnusableKey,
    },
    /// Discovery needs an issuer to begin at.
    #[error("keys can be discovered only from an issuer: name one")]
    DiscoveryWithoutIssuer,
    /// An address is not one.
    #[error("`{url}` is not an http or https address")]
    Address {
        /// What was given.
        url: String,
    },
    /// Keys would come over a connection that others can change.
    #[error(
        "`{url}` is not https: keys are fetched over https only, or over http from loopback, because others could \
         replace them"
    )]
    Insecure {
        /// What was given.
        url: String,
    },
    /// It cannot be told whose name a principal's would be.
    #[error(transparent)]
    Ambiguous(#[from] AmbiguousPrincipals),
    /// The system has no certificates to check the issuer's with.
    #[error(transparent)]
    Certificates(#[from] NoCertificates),
    /// A value of `hosts` is not a host.
    #[error("`{value}` is not a host: write a name or an address, with or without a port")]
    Host {
        /// What was given.
        value: String,
    },
    /// A value of `origins` is not an origin.
    #[error("`{value}` is not an origin: write it like `https://app.example.com`")]
    Origin {
        /// What was given.
        value: String,
    },
}

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum UnusableKey {
    /// It is not PEM.
    #[error("it is not a PEM text with a public key or a certificate")]
    NotPem,
    /// It is private.
    #[error("it is a private key; only the public one belongs here")]
    Private,
    /// It is broken, or of a kind that is not supported.
    #[error("only RSA of 2048 to 8192 bits, P-256, P-384 and Ed25519 are supported")]
    Kind,
}
