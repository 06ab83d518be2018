//! Where agents connect: HTTP/1.1 over TCP, with or without TLS, with bounds on what a connection may
//! cost.

mod connection;
mod error;
mod shutdown;
mod tls;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use toolwarden_warden::settings::Listen;

use connection::Connections;

pub use crate::identity::TlsSubject;
pub use connection::Answers;
pub use error::ListenError;
pub use shutdown::Shutdown;
pub use tls::Certificates;

/// How many connections may wait to be taken.
const BACKLOG: u32 = 1024;
/// How long no connection is taken when the system has no room for one.
const NO_ROOM: Duration = Duration::from_millis(200);

/// What a connection may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most connections at a time; others wait.
    pub connections: usize,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a new connection may take to send the head of its first request.
    pub first_request: Duration,
    /// How long it may take for each further one, waiting included.
    pub next_request: Duration,
    /// The largest head of a request, in bytes.
    pub head_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            handshake: Duration::from_secs(10),
            first_request: Duration::from_secs(10),
            // Clients keep connections for a minute or more, and do not like to find them closed.
            next_request: Duration::from_secs(120),
            head_bytes: 64 * 1024,
        }
    }
}

/// An address that is listened at.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    certificates: Option<Certificates>,
    limits: Limits,
}

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The connections that were still busy when their time was over, and were cut.
    pub cut: usize,
}

impl Listener {
    /// Takes the address and reads the certificates. Connections wait until they are served. Needs a
    /// runtime.
    ///
    /// # Errors
    /// The address cannot be had, or a certificate cannot be used.
    pub fn bind(listen: &Listen) -> Result<Self, ListenError> {
        Self::bind_with(listen, Limits::default())
    }

    /// Like [`Self::bind`], with other bounds.
    ///
    /// # Errors
    /// The address cannot be had, or a certificate cannot be used.
    pub fn bind_with(listen: &Listen, limits: Limits) -> Result<Self, ListenError> {
        let certificates = listen.tls.as_ref().map(Certificates::read).transpose()?;
        let at = listen.address;
        let socket = socket(at).map_err(|source| ListenError::bind(at, source))?;
        let address = socket.local_addr();
        Ok(Self {
            address: address.map_err(|source| ListenError::bind(at, source))?,
            socket,
            certificates,
            limits,
        })
    }

    /// The address with its real port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The certificates it listens with, to be read again when they change; also while it serves.
    #[must_use]
    pub fn certificates(&self) -> Option<Certificates> {
        self.certificates.clone()
    }

    /// Serves until the end is announced; then lets requests in flight end for as long as `drain`, and
    /// serves one request of each connection that comes meanwhile. Streams without an end are to watch
    /// `shutdown` themselves.
    ///
    /// Requests carry [`axum::extract::ConnectInfo`] with the peer's address, and [`TlsSubject`] where
    /// the peer has a client certificate.
    pub async fn serve(
        self,
        answers: impl Answers,
        shutdown: Shutdown,
        drain: impl Fn() -> Duration,
    ) -> Served {
        let Self {
            socket,
            certificates,
            limits,
            ..
        } = self;
        let connections = Arc::new(Connections::new(
            answers,
            certificates,
            limits,
            shutdown.clone(),
        ));
        let room = Arc::new(Semaphore::new(limits.connections));
        let mut open = JoinSet::new();
        loop {
            let next = async {
                // Nobody closes the semaphore.
                let place = Arc::clone(&room).acquire_owned().await.ok();
                let (stream, peer) = accept(&socket).await;
                (place, stream, peer)
            };
            tokio::select! {
                () = shutdown.begun() => break,
                Some(_ended) = open.join_next() => {}
                (place, stream, peer) = next => {
                    let connections = Arc::clone(&connections);
                    open.spawn(async move {
                        connections.serve(stream, peer).await;
                        drop(place);
                    });
                }
            }
        }
        // Connections are still taken, so that requests get an answer that says to try again, and calls
        // in flight get what their agents still have to say.
        let mut late = JoinSet::new();
        let ended = async {
            loop {
                tokio::select! {
                    ended = open.join_next() => if ended.is_none() {
                        return;
                    },
                    Some(_ended) = late.join_next() => {}
                    (stream, peer) = accept(&socket), if late.len() < limits.connections => {
                        let connections = Arc::clone(&connections);
                        late.spawn(async move { connections.serve_last(stream, peer).await });
                    }
                }
            }
        };
        let in_time = timeout(drain(), ended).await.is_ok();
        let cut = if in_time { 0 } else { open.len() };
        open.shutdown().await;
        late.shutdown().await;
        Served { cut }
    }
}

fn socket(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A gateway that starts again takes its address at once. Elsewhere it means that two may share it.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The next connection. Failures are of one connection, or of the system for a while.
async fn accept(socket: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match socket.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_of_connection(&error) => {}
            Err(_) => sleep(NO_ROOM).await,
        }
    }
}

fn is_of_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}
