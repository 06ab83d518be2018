use std::time::Duration;

use serde_json::value::RawValue;
use toolwarden_mcp::MessageHandler;

/// One request to a server, other than a tool call.
#[derive(Clone, Copy)]
pub struct UpstreamRequest<'a> {
    /// The method. `tools/call` is refused: it needs a permit, and [`super::Upstream::call`].
    pub method: &'a str,
    /// The parameters as they are sent.
    pub params: Option<&'a RawValue>,
    /// Headers beyond those of the protocol; ignored unless the server is an HTTP server.
    pub headers: &'a [(String, String)],
    /// The timeout; `None` means the one of the settings.
    pub timeout: Option<Duration>,
    /// Receives what the server sends on the request's own stream (HTTP only).
    pub message_handler: Option<&'a dyn MessageHandler>,
    /// Called with the JSON-RPC id just before the request is sent, and again if it is sent a second time over a
    /// new session.
    pub sent: Option<&'a (dyn Fn(i64) + Sync)>,
    /// Whether a request that stays open keeps the link open with it.
    pub keeps_link_open: bool,
    /// The principal it is sent for; `None` is the gateway itself.
    pub principal: Option<&'a str>,
}

/// How a permitted call is sent; its fields mean the same as those of [`UpstreamRequest`].
#[derive(Clone, Copy)]
pub struct UpstreamCall<'a> {
    /// Headers beyond those of the protocol.
    pub headers: &'a [(String, String)],
    /// The timeout; `None` means the one of the settings.
    pub timeout: Option<Duration>,
    /// Receives what the server sends on the request's own stream (HTTP only).
    pub message_handler: Option<&'a dyn MessageHandler>,
    /// Called with the JSON-RPC id just before the request is sent.
    pub sent: Option<&'a (dyn Fn(i64) + Sync)>,
    /// What to do if the session has expired.
    pub on_expired: OnSessionExpired,
    /// The principal the tool is called for.
    pub principal: Option<&'a str>,
}

/// What to do with a request whose session has expired. A new session may be with a new version of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSessionExpired {
    /// Send it again over a new session.
    Resend,
    /// Return [`super::UpstreamError::SessionExpired`].
    Report,
    /// Return the same error and count a failure of the server, because the session was new.
    Fail,
}

impl<'a> UpstreamRequest<'a> {
    /// A request with only a method and parameters.
    #[must_use]
    pub const fn new(method: &'a str, params: Option<&'a RawValue>) -> Self {
        Self {
            method,
            params,
            headers: &[],
            timeout: None,
            message_handler: None,
            sent: None,
            keeps_link_open: true,
            principal: None,
        }
    }
}

impl Default for UpstreamCall<'_> {
    fn default() -> Self {
        Self {
            headers: &[],
            timeout: None,
            message_handler: None,
            sent: None,
            on_expired: OnSessionExpired::Resend,
            principal: None,
        }
    }
}

// Written by hand, because the `sent` function has no debug output.

impl std::fmt::Debug for UpstreamRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamRequest")
            .field("method", &self.method)
            .field("limit", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for UpstreamCall<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamCall")
            .field("limit", &self.timeout)
            .finish_non_exhaustive()
    }
}
