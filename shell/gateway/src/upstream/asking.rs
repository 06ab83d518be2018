use std::time::Duration;

use serde_json::value::RawValue;
use toolwarden_mcp::Audience;

/// One request to a server, whatever it is but a call of a tool.
#[derive(Clone, Copy)]
pub struct UpstreamAsking<'a> {
    /// The method. `tools/call` is refused: it needs a permit, and [`super::Upstream::call`].
    pub method: &'a str,
    /// The parameters as they are sent.
    pub params: Option<&'a RawValue>,
    /// Headers beyond those of the protocol; ignored where the server is no HTTP server.
    pub headers: &'a [(String, String)],
    /// How long it may take; none is what the settings say.
    pub limit: Option<Duration>,
    /// Hears what the server sends on the request's own stream (HTTP only).
    pub aside: Option<&'a dyn Audience>,
    /// Told the JSON-RPC id just before the request is sent; again where it is sent once more over a
    /// new session.
    pub sent: Option<&'a (dyn Fn(i64) + Sync)>,
    /// Whether a request that stays open keeps the link open with it.
    pub keeps: bool,
    /// For whom it is sent; none is the gateway itself.
    pub principal: Option<&'a str>,
}

/// One permitted call of a tool; the members are those of [`UpstreamAsking`].
#[derive(Clone, Copy)]
pub struct UpstreamCalling<'a> {
    /// The parameters as they are sent, with the name the server has for the tool.
    pub params: &'a RawValue,
    /// Headers beyond those of the protocol.
    pub headers: &'a [(String, String)],
    /// How long it may take; none is what the settings say.
    pub limit: Option<Duration>,
    /// Hears what the server sends on the request's own stream (HTTP only).
    pub aside: Option<&'a dyn Audience>,
    /// Told the JSON-RPC id just before the request is sent.
    pub sent: Option<&'a (dyn Fn(i64) + Sync)>,
    /// What becomes of it where the session had expired.
    pub on_expired: OnExpired,
    /// For whom the tool is called.
    pub principal: Option<&'a str>,
}

/// What becomes of a request where the session had expired. A new session may be with a new version of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExpired {
    /// It is sent once more over a new session.
    SendAgain,
    /// That is [`super::UpstreamError::Unread`].
    Report,
    /// That too, and a failure of the server: the session was new.
    Fail,
}

impl<'a> UpstreamAsking<'a> {
    /// A request with nothing but a method and parameters.
    #[must_use]
    pub const fn new(method: &'a str, params: Option<&'a RawValue>) -> Self {
        Self {
            method,
            params,
            headers: &[],
            limit: None,
            aside: None,
            sent: None,
            keeps: true,
            principal: None,
        }
    }
}

impl<'a> UpstreamCalling<'a> {
    /// A call with nothing but parameters.
    #[must_use]
    pub const fn new(params: &'a RawValue) -> Self {
        Self {
            params,
            headers: &[],
            limit: None,
            aside: None,
            sent: None,
            on_expired: OnExpired::SendAgain,
            principal: None,
        }
    }
}

// What is told of the id is a function, and has no debug output.

impl std::fmt::Debug for UpstreamAsking<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamAsking")
            .field("method", &self.method)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for UpstreamCalling<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamCalling")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
