use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use rustls::pki_types::pem;
use thiserror::Error;

/// The gateway cannot listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Another process has the address.
    #[error("address in use: another process listens at {address}")]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// The system does not give the address to this user.
    #[error("not allowed to listen at {address}: ports below 1024 often need a privilege")]
    Forbidden {
        /// The address.
        address: SocketAddr,
    },
    /// The address is not one of this machine.
    #[error("{address} is not an address of this machine")]
    NotOurs {
        /// The address.
        address: SocketAddr,
    },
    /// Something else.
    #[error("cannot listen at {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("{} cannot be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{} is not PEM with {wanted}", .path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        wanted: &'static str,
        /// What is wrong, where something is there.
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
        /// What is wrong.
        #[source]
        source: rustls::Error,
    },
    /// An authority for client certificates cannot be used.
    #[error("{} holds no authority that can be used", .path.display())]
    ClientAuthority {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl ListenError {
    pub(super) fn bind(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { address },
            io::ErrorKind::PermissionDenied => Self::Forbidden { address },
            io::ErrorKind::AddrNotAvailable => Self::NotOurs { address },
            _ => Self::Bind { address, source },
        }
    }
}
