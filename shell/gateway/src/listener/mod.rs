//! Where agents connect: HTTP/1.1 over TCP, with or without TLS, with bounds on what a connection may
//! cost.

mod connection;
mod descriptors;
mod error;
mod seats;
mod shutdown;
mod tls;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use toolwarden_warden::settings::{Listen, ListenLimits};

use connection::Connections;
use seats::{Seats, Taken};

pub use crate::identity::TlsSubject;
pub use connection::Answers;
pub use descriptors::raise_descriptor_limit;
pub use error::ListenError;
pub(crate) use seats::Seat;
pub use shutdown::Shutdown;
pub use tls::Certificates;

/// How many connections may wait to be taken.
const BACKLOG: u32 = 1024;
/// How long no connection is taken when the system has no room for one.
const NO_ROOM: Duration = Duration::from_millis(200);

/// How long a TLS handshake may take at most.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What a connection may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most connections at a time; others wait.
    pub connections: usize,
    /// The most connections of one address; others are closed.
    pub per_address: usize,
    /// The most connections of one principal; requests over others are refused.
    pub per_principal: usize,
    /// The most connections that are not authenticated; a newer one closes the oldest.
    pub unauthenticated: usize,
    /// The most of them from one address.
    pub unauthenticated_per_address: usize,
    /// How long a connection may take to be authenticated.
    pub authenticate: Duration,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a new connection may take to send the head of its first request.
    pub first_request: Duration,
    /// How long it may take for each further one, waiting included.
    pub next_request: Duration,
    /// The largest head of a request, in bytes.
    pub head_bytes: usize,
}

/// The part of all descriptors that stays free for servers and files, and the least of it.
const RESERVED_SHARE: usize = 4;
const LEAST_RESERVED: usize = 64;

impl Default for Limits {
    fn default() -> Self {
        Self::new(&ListenLimits::default(), None)
    }
}

impl Limits {
    /// The bounds of the settings, as far as the process may have so many descriptors.
    #[must_use]
    pub fn new(settings: &ListenLimits, descriptors: Option<u64>) -> Self {
        let count = |it: std::num::NonZeroU32| usize::try_from(it.get()).unwrap_or(usize::MAX);
        let descriptors =
            descriptors.map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX));
        let reserved = (descriptors / RESERVED_SHARE).max(LEAST_RESERVED);
        let room = descriptors.saturating_sub(reserved).max(1);
        let connections = count(settings.connections).min(room);
        // At least half of all places stay free for those who are authenticated.
        let unauthenticated = count(settings.unauthenticated).min(connections.div_ceil(2));
        Self {
            connections,
            per_address: count(settings.per_address).min(connections),
            // Others are not locked out by one caller, however many addresses it has.
            per_principal: count(settings.per_principal).min(connections.div_ceil(2)),
            unauthenticated,
            unauthenticated_per_address: count(settings.unauthenticated_per_address)
                .min(unauthenticated),
            authenticate: settings.authenticate_within,
            handshake: settings.authenticate_within.min(HANDSHAKE),
            first_request: settings.authenticate_within,
            next_request: settings.idle,
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
        let limits = Limits::new(&listen.limits, raise_descriptor_limit());
        Self::bind_with(listen, limits)
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
        let seats = Seats::new(limits);
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                () = shutdown.begun() => break,
                Some(_ended) = open.join_next() => {}
                (stream, peer, seat) = next(&socket, &seats) => {
                    let connections = Arc::clone(&connections);
                    open.spawn(async move { connections.serve(stream, peer, seat).await });
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
                    (stream, peer, seat) = next(&socket, &seats) => {
                        let connections = Arc::clone(&connections);
                        late.spawn(async move { connections.serve_last(stream, peer, seat).await });
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

/// The next connection that there is a place for. One whose address has all it may have is closed. Failures are
/// of one connection, or of the system for a while.
async fn next(socket: &TcpListener, seats: &Arc<Seats>) -> (TcpStream, SocketAddr, Taken) {
    loop {
        seats.room().await;
        match socket.accept().await {
            Ok((stream, peer)) => {
                if let Some(seat) = seats.take(peer.ip()) {
                    return (stream, peer, seat);
                }
            }
            Err(error) if is_of_connection(&error) => {}
            // There are no descriptors left: what others hold without having been authenticated is closed.
            Err(_) if seats.make_room() => tokio::task::yield_now().await,
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
