use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use rustls::pki_types::pem;
use thiserror::Error;

/// The gateway cannot listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Another process uses the address.
    #[error("address in use: another process listens at {address}")]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// The system does not allow this user to use the address.
    #[error("not allowed to listen at {address}: ports below 1024 often need a privilege")]
    Forbidden {
        /// The address.
        address: SocketAddr,
    },
    /// The address is not one of this machine.
    #[error("{address} is not an address of this machine")]
    AddressNotAvailable {
        /// The address.
        address: SocketAddr,
    },
    /// Another error.
    #[error("cannot listen at {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("{} cannot be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file has the wrong content.
    #[error("{} is not PEM with {wanted}", .path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
        /// The expected content.
        wanted: &'static str,
        /// The cause, if the content is present but invalid.
        #[source]
        source: Option<pem::Error>,
    },
    /// Certificate and key cannot be used together.
    #[error("the certificate {} cannot be used with the key {}", .certificate.display(), .key.display())]
    Certificate {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// The cause.
        #[source]
        source: rustls::Error,
    },
    /// An authority for client certificates cannot be used.
    #[error("{} contains no usable certificate authority", .path.display())]
    ClientAuthority {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl ListenError {
    pub(super) fn bind(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { address },
            io::ErrorKind::PermissionDenied => Self::Forbidden { address },
            io::ErrorKind::AddrNotAvailable => Self::AddressNotAvailable { address },
            _ => Self::Bind { address, source },
        }
    }
}
