//! The listener for agents: HTTP/1.1 over TCP, with or without TLS, with limits on the resources of a
//! connection.

mod connection;
mod connection_slots;
mod descriptors;
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
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use toolwarden_settings::{ListenLimits, ListenSettings};

use connection::ConnectionServer;
use connection_slots::{ConnectionSlots, SlotGuard};

pub use crate::identity::TlsSubject;
pub use connection::HttpHandler;
pub(crate) use connection_slots::ConnectionSlot;
pub use descriptors::raise_descriptor_limit;
pub use error::ListenError;
pub use shutdown::Shutdown;
pub use tls::ServerCertificates;

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;
/// How long the listener pauses when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// The longest duration of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Limits on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerLimits {
    /// The most connections at a time; further ones wait.
    pub connections: usize,
    /// The most connections from one address; further ones are closed.
    pub per_address: usize,
    /// The most connections of one principal; requests over further ones are refused.
    pub per_principal: usize,
    /// The most unauthenticated connections; a new one closes the oldest.
    pub unauthenticated: usize,
    /// The most unauthenticated connections from one address.
    pub unauthenticated_per_address: usize,
    /// How long a connection may take to be authenticated.
    pub authenticate: Duration,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a new connection may take to send the head of its first request.
    pub first_request: Duration,
    /// How long it may take to send the head of each further request, including idle time.
    pub next_request: Duration,
    /// The largest head of a request, in bytes.
    pub head_bytes: usize,
}

/// The fraction of all descriptors that stays free for servers and files, and its minimum.
const RESERVED_SHARE: usize = 4;
const MIN_RESERVED: usize = 64;

impl Default for ListenerLimits {
    fn default() -> Self {
        Self::new(&ListenLimits::default(), None)
    }
}

impl ListenerLimits {
    /// The limits of the settings, lowered if the process may not open so many descriptors.
    #[must_use]
    pub fn new(settings: &ListenLimits, descriptors: Option<u64>) -> Self {
        let count = |it: std::num::NonZeroU32| usize::try_from(it.get()).unwrap_or(usize::MAX);
        let descriptors =
            descriptors.map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX));
        let reserved = (descriptors / RESERVED_SHARE).max(MIN_RESERVED);
        let room = descriptors.saturating_sub(reserved).max(1);
        let connections = count(settings.connections).min(room);
        // At least half of all places stay free for authenticated connections.
        let unauthenticated = count(settings.unauthenticated).min(connections.div_ceil(2));
        Self {
            connections,
            per_address: count(settings.per_address).min(connections),
            // One caller does not lock others out, however many addresses it uses.
            per_principal: count(settings.per_principal).min(connections.div_ceil(2)),
            unauthenticated,
            unauthenticated_per_address: count(settings.unauthenticated_per_address)
                .min(unauthenticated),
            authenticate: settings.authenticate_within,
            handshake: settings.authenticate_within.min(HANDSHAKE_TIMEOUT),
            first_request: settings.authenticate_within,
            next_request: settings.idle,
            head_bytes: 64 * 1024,
        }
    }
}

/// A bound address.
#[derive(Debug)]
pub struct HttpListener {
    socket: TcpListener,
    address: SocketAddr,
    certificates: Option<ServerCertificates>,
    limits: ListenerLimits,
}

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeSummary {
    /// The connections that were still busy when the drain time ended, and were closed.
    pub aborted_connections: usize,
}

impl HttpListener {
    /// Binds the address and reads the certificates. Connections wait until they are served. Needs a tokio
    /// runtime.
    ///
    /// # Errors
    /// The address cannot be bound, or a certificate cannot be used.
    pub fn bind(listen: &ListenSettings) -> Result<Self, ListenError> {
        let limits = ListenerLimits::new(&listen.limits, raise_descriptor_limit());
        Self::bind_with(listen, limits)
    }

    /// Like [`Self::bind`], with other limits.
    ///
    /// # Errors
    /// The address cannot be bound, or a certificate cannot be used.
    pub fn bind_with(listen: &ListenSettings, limits: ListenerLimits) -> Result<Self, ListenError> {
        let certificates = listen
            .tls
            .as_ref()
            .map(ServerCertificates::read)
            .transpose()?;
        let at = listen.address;
        let socket = bind_socket(at).map_err(|source| ListenError::bind(at, source))?;
        let address = socket.local_addr();
        Ok(Self {
            address: address.map_err(|source| ListenError::bind(at, source))?,
            socket,
            certificates,
            limits,
        })
    }

    /// The address with its actual port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The certificates in use; they can be reloaded while it serves.
    #[must_use]
    pub fn certificates(&self) -> Option<ServerCertificates> {
        self.certificates.clone()
    }

    /// Serves until shutdown begins. Then lets requests in flight finish for as long as `drain`, and serves one
    /// request of each connection that arrives meanwhile. Streams that stay open indefinitely must watch `shutdown`
    /// themselves.
    ///
    /// Requests carry [`axum::extract::ConnectInfo`] with the peer's address, and [`TlsSubject`] if the peer has a
    /// client certificate.
    pub async fn serve(
        self,
        answers: impl HttpHandler,
        shutdown: Shutdown,
        drain: impl Fn() -> Duration,
    ) -> ServeSummary {
        let Self {
            socket,
            certificates,
            limits,
            ..
        } = self;
        let connections = Arc::new(ConnectionServer::new(
            answers,
            certificates,
            limits,
            shutdown.clone(),
        ));
        let slots = ConnectionSlots::new(limits);
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                () = shutdown.begun() => break,
                Some(_ended) = open.join_next() => {}
                (stream, peer, slot) = accept_next(&socket, &slots) => {
                    let connections = Arc::clone(&connections);
                    open.spawn(async move { connections.serve(stream, peer, slot).await });
                }
            }
        }
        // Connections are still accepted, so that new requests get a response that says to retry, and calls in
        // flight get the remaining messages of their agents.
        let mut late = JoinSet::new();
        let ended = async {
            loop {
                tokio::select! {
                    ended = open.join_next() => if ended.is_none() {
                        return;
                    },
                    Some(_ended) = late.join_next() => {}
                    (stream, peer, slot) = accept_next(&socket, &slots) => {
                        let connections = Arc::clone(&connections);
                        late.spawn(async move { connections.serve_last(stream, peer, slot).await });
                    }
                }
            }
        };
        let in_time = timeout(drain(), ended).await.is_ok();
        let cut = if in_time { 0 } else { open.len() };
        open.shutdown().await;
        late.shutdown().await;
        ServeSummary {
            aborted_connections: cut,
        }
    }
}

fn bind_socket(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restarted gateway can bind its address at once. On other systems, the option would let two processes
    // share the address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts the next connection for which there is a place. Closes a connection whose address has reached its
/// limit. A failure concerns one connection, or the system for a while.
async fn accept_next(
    socket: &TcpListener,
    slots: &Arc<ConnectionSlots>,
) -> (TcpStream, SocketAddr, SlotGuard) {
    loop {
        slots.wait_for_slot().await;
        match socket.accept().await {
            Ok((stream, peer)) => {
                if let Some(slot) = slots.acquire(peer.ip()) {
                    return (stream, peer, slot);
                }
            }
            Err(error) if is_connection_error(&error) => {}
            // There are no descriptors left: unauthenticated connections are closed.
            Err(_) if slots.evict_one() => tokio::task::yield_now().await,
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

fn is_connection_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}
