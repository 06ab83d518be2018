//! One connection to a server, for somebody who speaks for others.

use std::fmt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::audience::{Audience, Ear};
use crate::endpoint::Endpoint;
use crate::error::{Evidence, McpError};
use crate::face::Face;
use crate::limits::Limits;
use crate::message::RpcError;
use crate::negotiate;
use crate::protocol::{Era, EraPreference};
use crate::server::ServerDescription;
use crate::wire::{Asking, Wire};

/// A connection to a server. Requests may run concurrently; a clone is the same connection.
///
/// Dropping the last clone kills a started program and its process group at once; [`Link::close`]
/// lets it end in order. A process that leaves the process group of its server (`setsid`) ends with it where
/// this process adopts such processes ([`crate::orphans`]).
#[derive(Debug, Clone)]
pub struct Link {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    wire: Wire,
    server: ServerDescription,
    ear: Arc<Ear>,
}

/// One request.
pub struct LinkAsking<'a> {
    /// The method.
    pub method: &'a str,
    /// The text of the parameters, sent as it is. In the stateless era it carries the client's
    /// envelope already: see [`crate::protocol::stamped`].
    pub params: Option<&'a RawValue>,
    /// HTTP headers beyond those that the era demands; other transports ignore them.
    pub headers: Vec<(String, String)>,
    /// How long the server may be silent about the request.
    pub limit: Duration,
    /// Hears what the server sends on the stream of this request (HTTP only).
    pub aside: Option<&'a dyn Audience>,
    /// Told the JSON-RPC id just before the request is sent.
    pub sent: Option<&'a (dyn Fn(i64) + Sync)>,
}

impl fmt::Debug for LinkAsking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Parameters and headers may hold secrets.
        f.debug_struct("LinkAsking")
            .field("method", &self.method)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Link {
    /// Starts or reaches the server and agrees on a version. The audience hears what belongs to no
    /// request: on standard streams and on the older HTTP transport everything, else what comes on
    /// the stream of [`Link::listen`]. It answers all requests, `ping` included, except a `ping`
    /// that comes before the connection is open.
    ///
    /// Needs a tokio runtime with time and I/O enabled.
    ///
    /// # Errors
    /// Tells why the server cannot be reached or understood.
    pub async fn open(
        endpoint: &Endpoint,
        limits: &Limits,
        face: &Face,
        audience: Arc<dyn Audience>,
    ) -> Result<Self, McpError> {
        let newest = EraPreference::Newest;
        Self::open_in(endpoint, limits, face, audience, newest).await
    }

    /// As [`Link::open`], in the era that is preferred.
    ///
    /// # Errors
    /// As [`Link::open`].
    pub async fn open_in(
        endpoint: &Endpoint,
        limits: &Limits,
        face: &Face,
        audience: Arc<dyn Audience>,
        preference: EraPreference,
    ) -> Result<Self, McpError> {
        Self::open_with(endpoint, limits, face, Ear::of(audience), preference).await
    }

    pub(crate) async fn open_with(
        endpoint: &Endpoint,
        limits: &Limits,
        face: &Face,
        ear: Ear,
        preference: EraPreference,
    ) -> Result<Self, McpError> {
        let ear = Arc::new(ear.bounded(limits));
        // The negotiation is the largest future here; on the heap it does not grow its callers.
        let opening = Box::pin(negotiate::open(endpoint, limits, face, &ear, preference));
        let (wire, opening) = match timeout(limits.total, opening).await {
            Ok(outcome) => outcome?,
            Err(_elapsed) => {
                return Err(McpError::Timeout {
                    method: "connect".to_owned(),
                    after: limits.total,
                    evidence: Box::<Evidence>::default(),
                });
            }
        };
        ear.open();
        let inner = Inner {
            wire,
            server: opening.into(),
            ear,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// What the server said about itself when the connection was opened.
    #[must_use]
    pub fn server(&self) -> &ServerDescription {
        &self.inner.server
    }

    /// Whether messages of the server cannot be told apart by request (stdio, the older HTTP
    /// transport).
    #[must_use]
    pub fn is_channel(&self) -> bool {
        self.inner.wire.transport.is_channel()
    }

    /// Whether the server has answered a request by a stream of events (streamable HTTP).
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.inner.wire.transport.is_streaming()
    }

    /// Sends a request and waits for its result or the server's error, both byte for byte.
    ///
    /// Dropping the future tells the server that nobody waits: by `notifications/cancelled`, and
    /// over HTTP by closing the stream. So does the end of the limit.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn ask(
        &self,
        asking: LinkAsking<'_>,
    ) -> Result<Result<Box<RawValue>, RpcError>, McpError> {
        let LinkAsking {
            method,
            params,
            headers,
            limit,
            aside,
            sent,
        } = asking;
        let asking = Asking {
            era: self.era(),
            method,
            params,
            headers,
            limit,
            aside,
            sent,
        };
        self.inner.wire.ask(asking).await
    }

    /// Starts the wait for the request with this id anew, where only the caller knows which request
    /// a message of the server is about.
    pub fn keep_waiting(&self, id: i64) {
        self.inner.wire.transport.sign_of_life(id);
    }

    /// Sends a message that wants no answer.
    ///
    /// # Errors
    /// It could not be sent, or the server refused it.
    pub async fn notify(&self, method: &str, params: Option<&RawValue>) -> Result<(), McpError> {
        self.inner.wire.notify(self.era(), method, params).await
    }

    /// Answers a request of the server.
    ///
    /// # Errors
    /// As [`Link::notify`].
    pub async fn answer(
        &self,
        id: &RawValue,
        outcome: Result<&RawValue, &RpcError>,
    ) -> Result<(), McpError> {
        self.inner.wire.answer(id, outcome).await
    }

    /// Opens the stream on which an HTTP server of the handshake era speaks by itself, once. It is
    /// opened again while the connection lives, unless the server has none. Its failure does not end
    /// the connection.
    pub fn listen(&self) {
        if self.era() == Era::Handshake {
            self.inner.wire.transport.listen();
        }
    }

    /// Whether the connection is of no more use: the program or the stream has ended, or the
    /// session has expired.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inner.wire.transport.ending().is_told()
    }

    /// Why this side ended the connection, where the server sent more than it may.
    #[must_use]
    pub fn excess(&self) -> Option<McpError> {
        let is_flooded = self.inner.ear.is_flooded();
        is_flooded.then(|| self.limits().flooded())
    }

    /// Resolves when the connection has ended.
    pub async fn ended(&self) {
        self.inner.wire.transport.ending().wait().await;
    }

    /// How a started program ended, once the connection has ended.
    pub async fn exit_status(&self) -> Option<ExitStatus> {
        self.inner.wire.transport.exit_status().await
    }

    /// The process id of a started program.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.inner.wire.transport.pid()
    }

    /// What a started program wrote besides messages so far. Empty for HTTP.
    #[must_use]
    pub fn evidence(&self) -> Evidence {
        *self.inner.wire.transport.evidence()
    }

    /// Ends the connection for all clones: a session is deleted, a program ended with all it
    /// started.
    pub async fn close(self) {
        self.inner.wire.close().await;
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.wire.limits
    }

    pub(crate) fn timed_out(&self, method: &str, after: Duration) -> McpError {
        self.inner.wire.timed_out(method, after)
    }

    fn era(&self) -> Era {
        self.inner.server.era
    }
}
