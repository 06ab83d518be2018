use std::sync::Arc;

use rustls_platform_verifier::BuilderVerifierExt as _;
use thiserror::Error;

/// The certificates of the platform cannot be used.
#[derive(Debug, Error)]
#[error("the certificates of this system cannot be used")]
pub struct NoCertificates(#[source] rustls::Error);

/// A configuration that trusts whom the platform trusts.
pub(crate) fn trusting_the_platform() -> Result<rustls::ClientConfig, NoCertificates> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verified = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_platform_verifier());
    Ok(verified.map_err(NoCertificates)?.with_no_client_auth())
}

/// A configuration that trusts nobody. It keeps the HTTP client from looking for a process-wide one,
/// and no redirect leads from http to https.
pub(crate) fn trusting_nobody() -> Result<rustls::ClientConfig, NoCertificates> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(NoCertificates)?;
    Ok(builder
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth())
}
