//! Serves one connection: TLS handshake, requests, shutdown.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::server::TlsStream;
use tower_service::Service as _;

use super::connection_slots::{ConnectionSlot, SlotGuard};
use super::{ListenerLimits, ServerCertificates, Shutdown, TlsSubject};

/// How long a connection without a request yet stays open after shutdown begins.
const FIRST_REQUEST_LINGER: Duration = Duration::from_secs(1);
/// How long an idle connection stays open after shutdown begins.
const NEXT_REQUEST_LINGER: Duration = Duration::from_millis(100);

/// How long the rest of a response may take on a connection that was not authenticated in time.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves requests.
pub trait HttpHandler: Clone + Send + Sync + 'static {
    /// Serves one request.
    fn answer(&self, request: Request) -> impl Future<Output = Response> + Send;
}

impl HttpHandler for Router {
    async fn answer(&self, request: Request) -> Response {
        match self.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// The settings for serving connections.
pub(super) struct ConnectionServer<A> {
    handler: A,
    certificates: Option<ServerCertificates>,
    limits: ListenerLimits,
    shutdown: Shutdown,
    http: http1::Builder,
}

/// The peer of a connection.
struct Peer {
    address: SocketAddr,
    subject: Option<TlsSubject>,
    slot: Arc<ConnectionSlot>,
}

impl<A: HttpHandler> ConnectionServer<A> {
    pub(super) fn new(
        handler: A,
        certificates: Option<ServerCertificates>,
        limits: ListenerLimits,
        shutdown: Shutdown,
    ) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(limits.next_request)
            .max_header_size(limits.head_bytes);
        Self {
            handler,
            certificates,
            limits,
            shutdown,
            http,
        }
    }

    /// Serves a connection to its end, or until it must make room for another one. A failure affects only its
    /// peer.
    pub(super) async fn serve(&self, stream: TcpStream, address: SocketAddr, slot: SlotGuard) {
        tokio::select! {
            () = slot.0.wait_for_eviction() => {}
            () = self.accept(stream, address, &slot.0, false) => {}
        }
    }

    /// Serves one request of a connection that was accepted after shutdown began.
    pub(super) async fn serve_last(&self, stream: TcpStream, address: SocketAddr, slot: SlotGuard) {
        tokio::select! {
            () = slot.0.wait_for_eviction() => {}
            () = self.accept(stream, address, &slot.0, true) => {}
        }
    }

    async fn accept(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        slot: &Arc<ConnectionSlot>,
        last: bool,
    ) {
        // Small responses are not delayed to be combined with others. A stream that refuses the option is ending.
        if stream.set_nodelay(true).is_err() {
            return;
        }
        let slot = Arc::clone(slot);
        let Some(certificates) = &self.certificates else {
            let peer = Peer {
                address,
                subject: None,
                slot,
            };
            return self.serve_http(stream, peer, last).await;
        };
        let handshake = certificates.acceptor().accept(stream);
        if let Ok(Ok(stream)) = timeout(self.limits.handshake, handshake).await {
            let subject = tls_subject(&stream);
            let peer = Peer {
                address,
                subject,
                slot,
            };
            self.serve_http(stream, peer, last).await;
        }
    }

    async fn serve_http<S>(&self, stream: S, peer: Peer, last: bool)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let deadline = Instant::now() + self.limits.authenticate;
        let has_asked = AtomicBool::new(false);
        let (in_flight, answered) = (AtomicUsize::new(0), Notify::new());
        let service = service_fn(|request| {
            has_asked.store(true, Ordering::Relaxed);
            in_flight.fetch_add(1, Ordering::Relaxed);
            let answer = self.handle_request(request, &peer);
            let (in_flight, answered) = (&in_flight, &answered);
            async move {
                let answer = answer.await;
                in_flight.fetch_sub(1, Ordering::Relaxed);
                answered.notify_one();
                answer
            }
        });
        let mut connection = pin!(self.http.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            _ended = connection.as_mut() => return,
            () = sleep(self.limits.first_request) => {}
            () = self.shutdown.begun(), if !last => {}
        }
        if !has_asked.load(Ordering::Relaxed) && !self.shutdown.has_begun() {
            return;
        }
        if !peer.slot.is_authenticated() {
            tokio::select! {
                _ended = connection.as_mut() => return,
                () = sleep_until(deadline) => {}
                () = self.shutdown.begun() => {}
            }
        }
        while !peer.slot.is_authenticated() && !self.shutdown.has_begun() {
            if in_flight.load(Ordering::Relaxed) == 0 {
                // Sent responses may still be in transit.
                connection.as_mut().graceful_shutdown();
                drop(timeout(CLOSE_TIMEOUT, connection).await);
                return;
            }
            tokio::select! {
                _ended = connection.as_mut() => return,
                () = answered.notified() => {}
                () = self.shutdown.begun() => {}
            }
        }
        tokio::select! {
            _ended = connection.as_mut() => return,
            () = self.shutdown.begun() => {}
        }
        // The client may have sent a request already: it gets a response and not a closed connection.
        let linger = match has_asked.load(Ordering::Relaxed) {
            true => NEXT_REQUEST_LINGER,
            false => FIRST_REQUEST_LINGER,
        };
        if timeout(linger, connection.as_mut()).await.is_ok() || !has_asked.load(Ordering::Relaxed)
        {
            return;
        }
        connection.as_mut().graceful_shutdown();
        drop(connection.await);
    }

    async fn handle_request(
        &self,
        request: Request<Incoming>,
        peer: &Peer,
    ) -> Result<Response, Infallible> {
        let mut request = request.map(Body::new);
        let extensions = request.extensions_mut();
        extensions.insert(ConnectInfo(peer.address));
        extensions.insert(Arc::clone(&peer.slot));
        if let Some(subject) = &peer.subject {
            extensions.insert(subject.clone());
        }
        let mut response = self.handler.answer(request).await;
        if self.shutdown.has_begun() {
            // No further request will be served.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        Ok(response)
    }
}

/// The subject of the client certificate, which the handshake has verified.
fn tls_subject(stream: &TlsStream<TcpStream>) -> Option<TlsSubject> {
    let (_, session) = stream.get_ref();
    let certificate = session.peer_certificates()?.first()?;
    Some(TlsSubject::of_certificate(certificate))
}
