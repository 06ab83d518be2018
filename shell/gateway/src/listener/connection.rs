//! One connection: handshake, requests, end.

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

use super::seats::{Seat, Taken};
use super::{Certificates, Limits, Shutdown, TlsSubject};

/// How long a connection that has sent no request yet stays open after the end was announced.
const FIRST_REQUEST_LINGER: Duration = Duration::from_secs(1);
/// How long an idle connection stays open after the end was announced.
const NEXT_REQUEST_LINGER: Duration = Duration::from_millis(100);

/// How long the rest of an answer may take on a connection that was not authenticated in time.
const LAST_BYTES: Duration = Duration::from_secs(2);

/// Who answers requests.
pub trait Answers: Clone + Send + Sync + 'static {
    /// Answers one.
    fn answer(&self, request: Request) -> impl Future<Output = Response> + Send;
}

impl Answers for Router {
    async fn answer(&self, request: Request) -> Response {
        match self.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// How connections are served.
pub(super) struct Connections<A> {
    answers: A,
    certificates: Option<Certificates>,
    limits: Limits,
    shutdown: Shutdown,
    http: http1::Builder,
}

/// Who is at the other end.
struct Peer {
    address: SocketAddr,
    subject: Option<TlsSubject>,
    seat: Arc<Seat>,
}

impl<A: Answers> Connections<A> {
    pub(super) fn new(
        answers: A,
        certificates: Option<Certificates>,
        limits: Limits,
        shutdown: Shutdown,
    ) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(limits.next_request)
            .max_header_size(limits.head_bytes);
        Self {
            answers,
            certificates,
            limits,
            shutdown,
            http,
        }
    }

    /// Serves a connection to its end, or until it has to make room for another one. Failures concern its peer
    /// alone.
    pub(super) async fn serve(&self, stream: TcpStream, address: SocketAddr, seat: Taken) {
        tokio::select! {
            () = seat.0.evicted() => {}
            () = self.accept(stream, address, &seat.0, false) => {}
        }
    }

    /// Serves one request of a connection that came after the end was announced.
    pub(super) async fn serve_last(&self, stream: TcpStream, address: SocketAddr, seat: Taken) {
        tokio::select! {
            () = seat.0.evicted() => {}
            () = self.accept(stream, address, &seat.0, true) => {}
        }
    }

    async fn accept(&self, stream: TcpStream, address: SocketAddr, seat: &Arc<Seat>, last: bool) {
        // Small answers are not held back to be sent with others. A stream that refuses is ending.
        if stream.set_nodelay(true).is_err() {
            return;
        }
        let seat = Arc::clone(seat);
        let Some(certificates) = &self.certificates else {
            let peer = Peer {
                address,
                subject: None,
                seat,
            };
            return self.speak(stream, peer, last).await;
        };
        let handshake = certificates.acceptor().accept(stream);
        if let Ok(Ok(stream)) = timeout(self.limits.handshake, handshake).await {
            let subject = subject_of(&stream);
            let peer = Peer {
                address,
                subject,
                seat,
            };
            self.speak(stream, peer, last).await;
        }
    }

    async fn speak<S>(&self, stream: S, peer: Peer, last: bool)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let deadline = Instant::now() + self.limits.authenticate;
        let has_asked = AtomicBool::new(false);
        let (in_flight, answered) = (AtomicUsize::new(0), Notify::new());
        let service = service_fn(|request| {
            has_asked.store(true, Ordering::Relaxed);
            in_flight.fetch_add(1, Ordering::Relaxed);
            let answer = self.answer(request, &peer);
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
        if !peer.seat.is_authenticated() {
            tokio::select! {
                _ended = connection.as_mut() => return,
                () = sleep_until(deadline) => {}
                () = self.shutdown.begun() => {}
            }
        }
        while !peer.seat.is_authenticated() && !self.shutdown.has_begun() {
            if in_flight.load(Ordering::Relaxed) == 0 {
                // What was answered may still be on the wire.
                connection.as_mut().graceful_shutdown();
                drop(timeout(LAST_BYTES, connection).await);
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
        // A request may have been sent already: it gets an answer rather than a closed connection.
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

    async fn answer(
        &self,
        request: Request<Incoming>,
        peer: &Peer,
    ) -> Result<Response, Infallible> {
        let mut request = request.map(Body::new);
        let extensions = request.extensions_mut();
        extensions.insert(ConnectInfo(peer.address));
        extensions.insert(Arc::clone(&peer.seat));
        if let Some(subject) = &peer.subject {
            extensions.insert(subject.clone());
        }
        let mut response = self.answers.answer(request).await;
        if self.shutdown.has_begun() {
            // There will be no further request to answer.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        Ok(response)
    }
}

/// Whom the client certificate names, which the handshake has checked.
fn subject_of(stream: &TlsStream<TcpStream>) -> Option<TlsSubject> {
    let (_, session) = stream.get_ref();
    let certificate = session.peer_certificates()?.first()?;
    Some(TlsSubject::of_certificate(certificate))
}
