//! The TLS certificates of the listener.

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;
use toolwarden_settings::TlsSettings;

use super::error::ListenError;

/// The certificates in force. Clones share them.
#[derive(Clone, Debug)]
pub struct ServerCertificates(Arc<ArcSwap<LoadedCertificates>>);

#[derive(Debug)]
struct LoadedCertificates {
    files: CertificateFiles,
    config: Arc<ServerConfig>,
}

/// The contents of the files, to detect a change.
#[derive(PartialEq, Eq)]
struct CertificateFiles {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl ServerCertificates {
    /// Reads the files.
    ///
    /// # Errors
    /// The files cannot be used.
    pub fn read(settings: &TlsSettings) -> Result<Self, ListenError> {
        let files = CertificateFiles::read(settings)?;
        let config = Arc::new(server_config(settings, &files)?);
        Ok(Self(Arc::new(ArcSwap::from_pointee(LoadedCertificates {
            files,
            config,
        }))))
    }

    /// Reads the files again, possibly others than before. New connections use the new certificates; open ones stay
    /// open. Returns whether anything changed; it is cheap if nothing did.
    ///
    /// # Errors
    /// The files cannot be used; the certificates in force stay in force.
    pub fn reload(&self, settings: &TlsSettings) -> Result<bool, ListenError> {
        let files = CertificateFiles::read(settings)?;
        if self.0.load().files == files {
            return Ok(false);
        }
        let config = Arc::new(server_config(settings, &files)?);
        self.0.store(Arc::new(LoadedCertificates { files, config }));
        Ok(true)
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.load().config))
    }
}

impl CertificateFiles {
    fn read(settings: &TlsSettings) -> Result<Self, ListenError> {
        let client_ca = settings.client_ca.as_deref();
        Ok(Self {
            certificate: read_file(&settings.certificate)?,
            key: read_file(&settings.key)?,
            client_ca: client_ca.map(read_file).transpose()?,
        })
    }
}

impl fmt::Debug for CertificateFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files(…)")
    }
}

fn server_config(
    settings: &TlsSettings,
    files: &CertificateFiles,
) -> Result<ServerConfig, ListenError> {
    let provider = Arc::new(ring::default_provider());
    let chain = parse_certificates(&settings.certificate, &files.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&files.key);
    let key = key.map_err(|source| not_pem(&settings.key, "a private key", Some(source)))?;
    let unusable = |source| ListenError::Certificate {
        certificate: settings.certificate.clone(),
        key: settings.key.clone(),
        source,
    };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder = match (&settings.client_ca, &files.client_ca) {
        (Some(path), Some(pem)) => {
            builder.with_client_cert_verifier(client_verifier(path, pem, provider)?)
        }
        _ => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Verifies client certificates. A client without one may still send a key or a token.
fn client_verifier(
    path: &Path,
    pem: &[u8],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, ListenError> {
    let mut roots = RootCertStore::empty();
    for certificate in parse_certificates(path, pem)? {
        let added = roots.add(certificate);
        added.map_err(|source| unusable_authority(path, source))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build();
    verifier.map_err(|source| unusable_authority(path, source))
}

fn unusable_authority(path: &Path, source: impl Error + Send + Sync + 'static) -> ListenError {
    ListenError::ClientAuthority {
        path: path.to_owned(),
        source: Box::new(source),
    }
}

fn parse_certificates(
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, ListenError> {
    let wanted = "certificates";
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.map_err(|source| not_pem(path, wanted, Some(source)))?;
    if chain.is_empty() {
        return Err(not_pem(path, wanted, None));
    }
    Ok(chain)
}

fn not_pem(path: &Path, wanted: &'static str, source: Option<pem::Error>) -> ListenError {
    let path = path.to_owned();
    ListenError::NotPem {
        path,
        wanted,
        source,
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, ListenError> {
    fs::read(path).map_err(|source| ListenError::Unreadable {
        path: path.to_owned(),
        source,
    })
}
