//! Sends requests to a server.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use memchr::memmem;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};
use toolwarden_live_guard::{PermittedCall, SentCall};
use toolwarden_mcp::{McpError, McpRequest, RawObject, RpcError, mask_secrets};
use toolwarden_watch::inline::strip_hidden;

use super::breaker::Admission;
use super::open_link::OpenLink;
use super::principal_limits::{FailureEffect, PrincipalRefusal, PrincipalRequest};
use super::{BusyReason, LinkKey, LinkRoute, Upstream, UpstreamError};

// INVARIANT: written to a server only by `Upstream::call`, which uses up a permit.
const TOOLS_CALL: &str = "tools/call";
/// A request that stays open while an agent listens. It needs no turn and proves nothing about the server.
const LISTEN: &str = "subscriptions/listen";
/// The longest wait of a request for its turn.
const SLOT_TIMEOUT: Duration = Duration::from_secs(10);

/// What to do with a request whose session has expired. A new session may be with a new version of the server, so only
/// a request that is not a call is sent again without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnSessionExpired {
    /// Send it again over a new session.
    Resend,
    /// Return [`UpstreamError::SessionExpired`].
    Report,
    /// Return the same error and count a failure of the server, because the session was new.
    Fail,
}

/// A server's answer to a request: a result or an error of its own.
pub(crate) type RpcResult = Result<Box<RawValue>, RpcError>;

impl Upstream {
    /// Sends a request over the link of a key, which is opened if necessary. If the session has expired, opens a
    /// new one and sends the request again; if the server ends during the request, does not send it again.
    ///
    /// # Errors
    /// The server gave no answer. `tools/call` is refused.
    pub async fn ask(
        &self,
        route: LinkRoute<'_>,
        request: McpRequest<'_>,
    ) -> Result<RpcResult, UpstreamError> {
        if request.method == TOOLS_CALL {
            return Err(self.needs_permit_error());
        }
        self.send_request(route, request, OnSessionExpired::Resend)
            .await
    }

    /// Sends a call that the guard permitted. It uses up the permit, which gives the method and the parameters; the
    /// rest is taken from the request. A call is written at most once: if its session has expired, this returns
    /// [`UpstreamError::SessionExpired`], and [`SentCall::retry`] says whether the same call may be sent again.
    ///
    /// An open call is not a permit:
    ///
    /// ```compile_fail
    /// # use toolwarden_gateway::upstream::{LinkRoute, Upstream};
    /// # use toolwarden_mcp::McpRequest;
    /// # use toolwarden_live_guard::OpenCall;
    /// # async fn send(upstream: &Upstream, open: OpenCall, route: LinkRoute<'_>) {
    /// let (_sent, _answer) = upstream.call(open, route, McpRequest::new("tools/call", None)).await;
    /// # }
    /// ```
    ///
    /// ```
    /// # use toolwarden_gateway::upstream::{LinkRoute, Upstream};
    /// # use toolwarden_mcp::McpRequest;
    /// # use toolwarden_live_guard::PermittedCall;
    /// # async fn send(upstream: &Upstream, call: PermittedCall, route: LinkRoute<'_>) {
    /// let (_sent, _answer) = upstream.call(call, route, McpRequest::new("tools/call", None)).await;
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server gave no answer.
    pub async fn call(
        &self,
        call: PermittedCall,
        route: LinkRoute<'_>,
        mut request: McpRequest<'_>,
    ) -> (SentCall, Result<RpcResult, UpstreamError>) {
        if *call.server() != self.name {
            return (call.into_sent(), Err(self.needs_permit_error()));
        }
        let on_expired = if call.is_retry() {
            OnSessionExpired::Fail
        } else {
            OnSessionExpired::Report
        };
        let sent_call = call.into_sent();
        request.method = TOOLS_CALL;
        request.params = Some(sent_call.params());
        let outcome = self.send_request(route, request, on_expired).await;
        (sent_call, outcome)
    }

    /// Sends a notification over the link of a key, if it is open: a server without a link does not need the
    /// notification.
    ///
    /// # Errors
    /// No link is open, or it failed.
    pub async fn notify(
        &self,
        key: &LinkKey,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), UpstreamError> {
        if method == TOOLS_CALL {
            return Err(self.needs_permit_error());
        }
        let using = self.open_link(key).ok_or_else(|| self.no_link_error())?;
        let outcome = using.open_link().link().notify(method, params).await;
        outcome.map_err(|error| self.classify_failure(using.open_link(), error))
    }

    /// Answers a request of the server that came over the link of a key.
    ///
    /// # Errors
    /// No link is open, or it failed.
    pub async fn answer(
        &self,
        key: &LinkKey,
        id: &RawValue,
        outcome: Result<&RawValue, &RpcError>,
    ) -> Result<(), UpstreamError> {
        let using = self.open_link(key).ok_or_else(|| self.no_link_error())?;
        let sent = using.open_link().link().answer(id, outcome).await;
        sent.map_err(|error| self.classify_failure(using.open_link(), error))
    }

    /// Restarts the timeout of the request with this id, for messages of the server that only the caller can
    /// attribute to a request.
    pub fn extend_timeout(&self, key: &LinkKey, id: i64) {
        if let Some(using) = self.open_link(key) {
            using.open_link().link().extend_timeout(id);
        }
    }

    async fn send_request(
        &self,
        route: LinkRoute<'_>,
        mut request: McpRequest<'_>,
        on_expired: OnSessionExpired,
    ) -> Result<RpcResult, UpstreamError> {
        let LinkRoute {
            key, client_info, ..
        } = route;
        let stands = request.method == LISTEN;
        let mut trial = self.admit(key, route.principal, stands)?;
        let limit = request.timeout.unwrap_or(self.settings.timeouts.request);
        request.timeout = Some(limit);
        let mut using = self.acquire(key, client_info).await?;
        let _turns = if stands {
            None
        } else {
            let own = trial.principal_slots();
            Some((
                self.acquire_principal_slot(own, limit).await?,
                self.acquire_slot(limit).await?,
            ))
        };
        // The link may have ended while the request waited.
        if using.open_link().has_ended() {
            using = self.acquire(key, client_info).await?;
        }
        if stands {
            using.mark_long_lived(route.keeps_link_open);
        }
        let began = Instant::now();
        let mut outcome = using.open_link().link().ask(request).await;
        if let Err(error) = &outcome
            && was_not_read(error)
        {
            let was_sent = matches!(error, McpError::SessionExpired { .. });
            self.on_session_expired(using.open_link());
            if on_expired == OnSessionExpired::Fail {
                trial.record_failure(using.open_link(), error);
            }
            drop(using);
            if on_expired != OnSessionExpired::Resend {
                let server = Arc::clone(self.name.as_arc());
                return Err(UpstreamError::SessionExpired { server, was_sent });
            }
            using = self.acquire(key, client_info).await?;
            if stands {
                using.mark_long_lived(route.keeps_link_open);
            }
            outcome = using.open_link().link().ask(request).await;
        }
        match outcome {
            Ok(answer) => {
                if !stands {
                    self.record_latency(began.elapsed());
                    trial.record_success();
                }
                let answer = answer.map(mask_failure_result).map_err(mask_error);
                Ok(self.strip_hidden(request.method, answer))
            }
            Err(error) => {
                if !stands && is_server_fault(&error) {
                    trial.record_failure(using.open_link(), &error);
                }
                Err(self.classify_failure(using.open_link(), error))
            }
        }
    }

    /// Removes hidden characters from an answer if the server's settings say so. Lists and results of tools are
    /// checked for them before that.
    fn strip_hidden(&self, method: &str, answer: RpcResult) -> RpcResult {
        if !self.settings.watch.strip_hidden {
            return answer;
        }
        let raw = |text: Box<RawValue>| match strip_hidden(text.get()) {
            Cow::Owned(stripped) => RawValue::from_string(stripped).unwrap_or(text),
            Cow::Borrowed(_) => text,
        };
        let is_searched =
            method.ends_with("/list") || method == TOOLS_CALL || method.starts_with("tasks/");
        match answer {
            Ok(result) if is_searched => Ok(result),
            Ok(result) => Ok(raw(result)),
            Err(error) => {
                let message = serde_json::Value::from(error.message).to_string();
                let message = strip_hidden(&message);
                Err(RpcError {
                    message: serde_json::from_str(&message).unwrap_or_default(),
                    data: error.data.map(raw),
                    ..error
                })
            }
        }
    }

    fn admit(
        &self,
        key: &LinkKey,
        principal: Option<&str>,
        stands: bool,
    ) -> Result<AdmittedRequest<'_>, UpstreamError> {
        let now = Instant::now();
        let principal = principal.map(|name| self.principals.admit(name, key, stands, now));
        let principal = principal.transpose().map_err(|refused| {
            let server = Arc::clone(self.name.as_arc());
            match refused {
                PrincipalRefusal::BreakerOpen { retry_after } => {
                    UpstreamError::BreakerOpenForPrincipal {
                        server,
                        retry_after,
                    }
                }
                PrincipalRefusal::TooManyLinks { limit } => UpstreamError::Busy {
                    server,
                    what: BusyReason::PrincipalLinks { limit },
                },
            }
        })?;
        let admission = {
            let mut lifecycle = self.lifecycle();
            if stands {
                lifecycle.breaker.admit_long_lived(now)
            } else {
                lifecycle.breaker.admit(now)
            }
        };
        match admission {
            Ok(admission) => Ok(AdmittedRequest {
                upstream: self,
                admission,
                principal,
            }),
            Err(retry_after) => Err(UpstreamError::BreakerOpen {
                server: Arc::clone(self.name.as_arc()),
                retry_after,
            }),
        }
    }

    /// Waits for a turn among the requests of the same principal. This comes before the turn among all requests,
    /// so that requests that wait here do not occupy one of those turns.
    async fn acquire_principal_slot(
        &self,
        turns: Option<Arc<Semaphore>>,
        limit: Duration,
    ) -> Result<Option<OwnedSemaphorePermit>, UpstreamError> {
        let Some(turns) = turns else {
            return Ok(None);
        };
        if let Ok(turn) = Arc::clone(&turns).try_acquire_owned() {
            return Ok(Some(turn));
        }
        match timeout(limit.min(SLOT_TIMEOUT), turns.acquire_owned()).await {
            Ok(Ok(turn)) => Ok(Some(turn)),
            Ok(Err(_)) | Err(_) => Err(UpstreamError::Busy {
                server: Arc::clone(self.name.as_arc()),
                what: BusyReason::PrincipalRequests {
                    limit: self.settings.principal_request_limit().get(),
                },
            }),
        }
    }

    async fn acquire_slot(&self, limit: Duration) -> Result<SemaphorePermit<'_>, UpstreamError> {
        // Most requests get a turn at once and need no timer.
        if let Ok(turn) = self.request_slots.try_acquire() {
            return Ok(turn);
        }
        match timeout(limit.min(SLOT_TIMEOUT), self.request_slots.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(UpstreamError::Busy {
                server: Arc::clone(self.name.as_arc()),
                what: BusyReason::Requests {
                    limit: self.settings.concurrency.get(),
                },
            }),
        }
    }

    /// The error that the caller gets for a failure of a link.
    fn classify_failure(&self, open_link: &Arc<OpenLink>, error: McpError) -> UpstreamError {
        if open_link.has_ended() {
            self.on_link_error(open_link, &error);
        }
        if matches!(error, McpError::SessionExpired { .. }) {
            self.on_session_expired(open_link);
        }
        let server = Arc::clone(self.name.as_arc());
        let source = Arc::new(error);
        match &*source {
            McpError::Timeout { after, .. } => UpstreamError::Timeout {
                server,
                after: *after,
            },
            McpError::Closed => UpstreamError::Closed { server },
            error if error.is_permanent() => UpstreamError::Permanent {
                server,
                retry_after: Duration::from_secs(60),
                source,
            },
            McpError::Exited { .. }
            | McpError::Broken { .. }
            | McpError::TooLarge { .. }
            | McpError::TooMany { .. } => UpstreamError::Lost { server, source },
            McpError::Http { status, .. } if !is_overload(*status) => {
                UpstreamError::Protocol { server, source }
            }
            McpError::Protocol { .. } | McpError::Rpc { .. } | McpError::InvalidParams { .. } => {
                UpstreamError::Protocol { server, source }
            }
            _ => self.down_error(source, None),
        }
    }

    fn needs_permit_error(&self) -> UpstreamError {
        UpstreamError::NeedsPermit {
            server: Arc::clone(self.name.as_arc()),
        }
    }

    fn no_link_error(&self) -> UpstreamError {
        UpstreamError::NoLink {
            server: Arc::clone(self.name.as_arc()),
        }
    }
}

/// A request that the breaker let through. If it is inconclusive, because it was cancelled or never sent,
/// another request becomes the trial.
struct AdmittedRequest<'u> {
    upstream: &'u Upstream,
    admission: Admission,
    /// The same for the breaker of its principal.
    principal: Option<PrincipalRequest<'u>>,
}

impl AdmittedRequest<'_> {
    /// The semaphore that limits the principal's requests in flight.
    fn principal_slots(&self) -> Option<Arc<Semaphore>> {
        let principal = self.principal.as_ref();
        principal.map(|it| Arc::clone(it.slots()))
    }

    fn record_success(&mut self) {
        if let Some(principal) = &mut self.principal {
            principal.record_success();
        }
        let news = {
            let mut lifecycle = self.upstream.lifecycle();
            lifecycle.last_request_failed = false;
            lifecycle.breaker.record_success()
        };
        if news {
            self.upstream.notify_change();
        }
    }

    fn record_failure(&mut self, open_link: &Arc<OpenLink>, error: &McpError) {
        let upstream = self.upstream;
        let now = Instant::now();
        let is_own = matches!(open_link.key(), LinkKey::Conversation(_));
        let of_principal = self.principal.as_mut().map(|it| it.record_failure(now));
        let trips = {
            let mut lifecycle = upstream.lifecycle();
            lifecycle.record_error(error);
            lifecycle.last_request_failed = true;
            // The trial request decides, whichever principal sent it.
            let is_trial = self.admission == Admission::Trial;
            match of_principal {
                _ if is_trial => lifecycle.breaker.record_failure(now),
                Some(failure) if failure.is_server_fault => lifecycle.breaker.open(now),
                // The failure of one principal or one conversation does not block the others.
                Some(_) => false,
                None if is_own => false,
                None => lifecycle.breaker.record_failure(now),
            }
        };
        let is_only_theirs =
            |it: FailureEffect| it.opens_breaker && (is_own || it.is_only_principal);
        let is_lost = trips || of_principal.is_some_and(is_only_theirs);
        // A program that hangs does not recover on its own.
        if is_lost && open_link.is_channel() {
            upstream.drop_failing_link(open_link);
        }
        upstream.notify_change();
    }
}

impl Drop for AdmittedRequest<'_> {
    fn drop(&mut self) {
        if self.admission == Admission::Trial {
            self.upstream
                .lifecycle()
                .breaker
                .abandon_trial(Instant::now());
        }
    }
}

/// Masks secrets of the settings in a result that reports a failure of the tool: such texts quote URLs and
/// headers. Results of successful tools are not changed.
fn mask_failure_result(result: Box<RawValue>) -> Box<RawValue> {
    let says_so = || {
        let members = RawObject::parse(&result).ok();
        members.is_some_and(|it| it.get("isError") == Some("true"))
    };
    if memmem::find(result.get().as_bytes(), b"isError").is_none() || !says_so() {
        return result;
    }
    match mask_secrets(result.get()) {
        Cow::Owned(text) => {
            RawValue::from_string(text).unwrap_or_else(|_| withheld_failure_result())
        }
        Cow::Borrowed(_) => result,
    }
}

fn withheld_failure_result() -> Box<RawValue> {
    let text = "the tool failed; its message contains a secret of the settings and is withheld";
    let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    serde_json::value::to_raw_value(&result).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Masks secrets of the settings in the error of a server, which may repeat them.
fn mask_error(error: RpcError) -> RpcError {
    let data = error.data.map(|data| match mask_secrets(data.get()) {
        Cow::Owned(text) => {
            RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
        }
        Cow::Borrowed(_) => data,
    });
    RpcError {
        message: mask_secrets(&error.message).into_owned(),
        data,
        ..error
    }
}

/// Whether the server did not read the request: its session is gone, or the link was closed before the
/// request was sent because another request had found the session gone.
const fn was_not_read(error: &McpError) -> bool {
    matches!(error, McpError::SessionExpired { .. } | McpError::Closed)
}

/// Whether an error means that the server is at fault, and not the request.
fn is_server_fault(error: &McpError) -> bool {
    match error {
        McpError::Http { status, .. } => is_overload(*status),
        McpError::Rpc { .. } | McpError::InvalidParams { .. } | McpError::Closed => false,
        _ => true,
    }
}

/// Whether a status is temporary and not caused by the request.
const fn is_overload(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..)
}
