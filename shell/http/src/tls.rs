use std::sync::Arc;

use rustls_platform_verifier::BuilderVerifierExt as _;
use thiserror::Error;

/// The platform's certificates cannot be used.
#[derive(Debug, Error)]
#[error("the certificates of this system cannot be used")]
pub struct CertificateError(#[source] rustls::Error);

/// A configuration that trusts the platform's certificate authorities.
pub(crate) fn platform_config() -> Result<rustls::ClientConfig, CertificateError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verified = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_platform_verifier());
    Ok(verified.map_err(CertificateError)?.with_no_client_auth())
}

/// A configuration that trusts no certificate authority. It keeps the HTTP client from looking for
/// a process-wide configuration. No redirect leads from http to https, so it is never used.
pub(crate) fn empty_config() -> Result<rustls::ClientConfig, CertificateError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(CertificateError)?;
    Ok(builder
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth())
}
