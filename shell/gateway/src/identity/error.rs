use thiserror::Error;
use toolwarden_http::CertificateError;
use toolwarden_settings::AmbiguousPrincipals;

/// An error in the settings about callers. It contains no secrets.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// A key is not given as a digest.
    #[error("the key of `{principal}` has to be a SHA-256 digest: 64 hexadecimal digits")]
    KeyDigest {
        /// The principal of the key.
        principal: String,
    },
    /// Two principals have the same key.
    #[error("`{one}` and `{other}` have the same key")]
    SharedKey {
        /// One principal.
        one: String,
        /// The other principal.
        other: String,
    },
    /// A shared secret is short enough to be guessed.
    #[error(
        "the secret for tokens of {issuer} is too short: at least {least} bytes, say from `openssl rand -base64 32`"
    )]
    WeakSecret {
        /// The issuer of the tokens.
        issuer: String,
        /// The minimum length.
        least: usize,
    },
    /// A public key cannot be read.
    #[error("the public key for tokens of {issuer} cannot be used: {why}")]
    PublicKey {
        /// The issuer of the tokens.
        issuer: String,
        /// The cause.
        why: UnusableKey,
    },
    /// Discovery needs an issuer.
    #[error("keys can be discovered only from an issuer: name one")]
    DiscoveryWithoutIssuer,
    /// A URL is invalid.
    #[error("`{url}` is not an http or https address")]
    Address {
        /// The configured value.
        url: String,
    },
    /// Keys would be fetched over a connection that others can tamper with.
    #[error(
        "`{url}` is not https: keys are fetched over https only, or over http from loopback, because others could \
         replace them"
    )]
    Insecure {
        /// The configured value.
        url: String,
    },
    /// The source of a principal's name would be ambiguous.
    #[error(transparent)]
    Ambiguous(#[from] AmbiguousPrincipals),
    /// The system has no root certificates to verify the issuer.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// A value of `hosts` is not a host.
    #[error("`{value}` is not a host: write a name or an address, with or without a port")]
    Host {
        /// The configured value.
        value: String,
    },
    /// A value of `origins` is not an origin.
    #[error("`{value}` is not an origin: write it like `https://app.example.com`")]
    Origin {
        /// The configured value.
        value: String,
    },
}

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum UnusableKey {
    /// It is not PEM.
    #[error("it is not a PEM text with a public key or a certificate")]
    NotPem,
    /// It is a private key.
    #[error("it is a private key; only the public one belongs here")]
    Private,
    /// It is broken, or its kind is not supported.
    #[error("only RSA of 2048 to 8192 bits, P-256, P-384 and Ed25519 are supported")]
    Kind,
}
