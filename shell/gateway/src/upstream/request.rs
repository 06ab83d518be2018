//! Requests on their way to a server.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use memchr::memmem;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};
use toolwarden_mcp::{Face, LinkAsking, McpError, Members, RpcError, masked};
use toolwarden_warden::guard::OpenCall;
use toolwarden_warden::inline::strip_hidden;

use super::breaker::Admission;
use super::held::{HeldLink, Using};
use super::principals::{Failure, PrincipalRequest, Refused};
use super::{Busy, LinkKey, OnExpired, Upstream, UpstreamAsking, UpstreamCalling, UpstreamError};

// INVARIANT: written to a server only by `Upstream::call`, which has the permit.
const TOOLS_CALL: &str = "tools/call";
/// A request that stays open for as long as anybody listens. It takes no turn and proves nothing.
const LISTEN: &str = "subscriptions/listen";
/// How long a request waits for its turn, at most.
const TURN_WAIT: Duration = Duration::from_secs(10);

/// What a server answers to a request: a result or an error of its own.
type Answer = Result<Box<RawValue>, RpcError>;

impl Upstream {
    /// Sends a request over the link of a key, opening it where needed. A session that expired is
    /// opened anew and the request sent once more; a request whose server ends under it is not.
    ///
    /// # Errors
    /// There is no answer. `tools/call` is refused.
    pub async fn ask(
        self: &Arc<Self>,
        key: &LinkKey,
        face: &Face,
        asking: UpstreamAsking<'_>,
    ) -> Result<Answer, UpstreamError> {
        if asking.method == TOOLS_CALL {
            return Err(self.needs_permit());
        }
        self.send(key, face, asking, OnExpired::SendAgain).await
    }

    /// Calls a tool that the guard permitted to call; else as [`Self::ask`].
    ///
    /// # Errors
    /// There is no answer.
    pub async fn call(
        self: &Arc<Self>,
        _permit: &OpenCall,
        key: &LinkKey,
        face: &Face,
        calling: UpstreamCalling<'_>,
    ) -> Result<Answer, UpstreamError> {
        let UpstreamCalling {
            params,
            headers,
            limit,
            aside,
            sent,
            on_expired,
            principal,
        } = calling;
        let asking = UpstreamAsking {
            method: TOOLS_CALL,
            params: Some(params),
            headers,
            limit,
            aside,
            sent,
            keeps: true,
            principal,
        };
        self.send(key, face, asking, on_expired).await
    }

    /// Sends a notification over the link of a key, if it is open: what a server does not know of needs
    /// no news.
    ///
    /// # Errors
    /// There is no open link, or it failed.
    pub async fn notify(
        &self,
        key: &LinkKey,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), UpstreamError> {
        if method == TOOLS_CALL {
            return Err(self.needs_permit());
        }
        let using = self.open_link(key).ok_or_else(|| self.no_link())?;
        let outcome = using.held().link().notify(method, params).await;
        outcome.map_err(|error| self.failed_over(using.held(), error))
    }

    /// Answers a request of the server that came over the link of a key.
    ///
    /// # Errors
    /// There is no open link, or it failed.
    pub async fn answer(
        &self,
        key: &LinkKey,
        id: &RawValue,
        outcome: Result<&RawValue, &RpcError>,
    ) -> Result<(), UpstreamError> {
        let using = self.open_link(key).ok_or_else(|| self.no_link())?;
        let sent = using.held().link().answer(id, outcome).await;
        sent.map_err(|error| self.failed_over(using.held(), error))
    }

    /// Starts the wait for the request with this id anew, where only the caller knows which request a
    /// message of the server is about.
    pub fn keep_waiting(&self, key: &LinkKey, id: i64) {
        if let Some(using) = self.open_link(key) {
            using.held().link().keep_waiting(id);
        }
    }

    async fn send(
        &self,
        key: &LinkKey,
        face: &Face,
        asking: UpstreamAsking<'_>,
        on_expired: OnExpired,
    ) -> Result<Answer, UpstreamError> {
        let stands = asking.method == LISTEN;
        let mut trial = self.admit(key, asking.principal, stands)?;
        let limit = asking.limit.unwrap_or(self.settings.timeouts.request);
        let mut using = self.using(key, face).await?;
        let _turns = if stands {
            None
        } else {
            let own = trial.turns();
            Some((self.own_turn(own, limit).await?, self.turn(limit).await?))
        };
        // It may have ended while the request waited.
        if using.held().has_ended() {
            using = self.using(key, face).await?;
        }
        if stands {
            using.stand(asking.keeps);
        }
        let began = Instant::now();
        let mut outcome = exchange(&using, asking, limit).await;
        if let Err(error) = &outcome
            && is_unread(error)
        {
            let was_sent = matches!(error, McpError::SessionExpired { .. });
            self.expired(using.held());
            if on_expired == OnExpired::Fail {
                trial.failed(using.held(), error);
            }
            drop(using);
            if on_expired != OnExpired::SendAgain {
                let server = Arc::clone(&self.name);
                return Err(UpstreamError::Unread { server, was_sent });
            }
            using = self.using(key, face).await?;
            if stands {
                using.stand(asking.keeps);
            }
            outcome = exchange(&using, asking, limit).await;
        }
        match outcome {
            Ok(answer) => {
                if !stands {
                    self.note_latency(began.elapsed());
                    trial.succeeded();
                }
                let answer = answer.map(masked_failure).map_err(masked_error);
                Ok(self.without_hidden(asking.method, answer))
            }
            Err(error) => {
                if !stands && counts(&error) {
                    trial.failed(using.held(), &error);
                }
                Err(self.failed_over(using.held(), error))
            }
        }
    }

    /// An answer without hidden characters, where the server's are not to be seen. Lists and results of tools are
    /// searched before that.
    fn without_hidden(&self, method: &str, answer: Answer) -> Answer {
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
    ) -> Result<Trial<'_>, UpstreamError> {
        let now = Instant::now();
        let principal = principal.map(|name| self.principals.admit(name, key, stands, now));
        let principal = principal.transpose().map_err(|refused| {
            let server = Arc::clone(&self.name);
            match refused {
                Refused::Open { retry_after } => UpstreamError::OpenForPrincipal {
                    server,
                    retry_after,
                },
                Refused::Links { limit } => UpstreamError::Busy {
                    server,
                    what: Busy::LinkShare { limit },
                },
            }
        })?;
        let admission = {
            let mut life = self.life();
            if stands {
                life.breaker.admit_standing(now)
            } else {
                life.breaker.admit(now)
            }
        };
        match admission {
            Ok(admission) => Ok(Trial {
                upstream: self,
                admission,
                principal,
            }),
            Err(retry_after) => Err(UpstreamError::Open {
                server: Arc::clone(&self.name),
                retry_after,
            }),
        }
    }

    /// Waits for a turn among the requests of the same principal. It comes before the turn among all, so that
    /// those who wait for their own take none of those.
    async fn own_turn(
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
        match timeout(limit.min(TURN_WAIT), turns.acquire_owned()).await {
            Ok(Ok(turn)) => Ok(Some(turn)),
            Ok(Err(_)) | Err(_) => Err(UpstreamError::Busy {
                server: Arc::clone(&self.name),
                what: Busy::Share {
                    limit: self.settings.share().get(),
                },
            }),
        }
    }

    async fn turn(&self, limit: Duration) -> Result<SemaphorePermit<'_>, UpstreamError> {
        // Most find a turn at once, and need no clock.
        if let Ok(turn) = self.turns.try_acquire() {
            return Ok(turn);
        }
        match timeout(limit.min(TURN_WAIT), self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(UpstreamError::Busy {
                server: Arc::clone(&self.name),
                what: Busy::Requests {
                    limit: self.settings.concurrency.get(),
                },
            }),
        }
    }

    /// What an error means for whoever asked.
    fn failed_over(&self, held: &Arc<HeldLink>, error: McpError) -> UpstreamError {
        if held.has_ended() {
            self.lost_by(held, &error);
        }
        if matches!(error, McpError::SessionExpired { .. }) {
            self.expired(held);
        }
        let server = Arc::clone(&self.name);
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
            _ => self.is_down(source, None),
        }
    }

    fn needs_permit(&self) -> UpstreamError {
        UpstreamError::NeedsPermit {
            server: Arc::clone(&self.name),
        }
    }

    fn no_link(&self) -> UpstreamError {
        UpstreamError::NoLink {
            server: Arc::clone(&self.name),
        }
    }
}

/// A request the breaker let through. One that finds nothing out, for it is given up or never sent,
/// leaves the trial to another.
struct Trial<'u> {
    upstream: &'u Upstream,
    admission: Admission,
    /// The same for the requests of its principal.
    principal: Option<PrincipalRequest<'u>>,
}

impl Trial<'_> {
    /// The turns of its principal.
    fn turns(&self) -> Option<Arc<Semaphore>> {
        let principal = self.principal.as_ref();
        principal.map(|it| Arc::clone(it.turns()))
    }

    fn succeeded(&mut self) {
        if let Some(principal) = &mut self.principal {
            principal.succeeded();
        }
        let news = {
            let mut life = self.upstream.life();
            life.troubled = false;
            life.breaker.succeeded()
        };
        if news {
            self.upstream.moved();
        }
    }

    fn failed(&mut self, held: &Arc<HeldLink>, error: &McpError) {
        let upstream = self.upstream;
        let now = Instant::now();
        let is_own = matches!(held.key(), LinkKey::Of(_));
        let of_principal = self.principal.as_mut().map(|it| it.failed(now));
        let trips = {
            let mut life = upstream.life();
            life.note_error(error);
            life.troubled = true;
            // The request that tries the server decides, whichever principal sent it.
            let is_trial = self.admission == Admission::Trial;
            match of_principal {
                _ if is_trial => life.breaker.failed(now),
                Some(failure) if failure.is_of_server => life.breaker.open(now),
                // Others are not refused for the failure of one principal, or of one conversation.
                Some(_) => false,
                None if is_own => false,
                None => life.breaker.failed(now),
            }
        };
        let is_only_theirs = |it: Failure| it.trips && (is_own || it.is_alone);
        let is_lost = trips || of_principal.is_some_and(is_only_theirs);
        // A program that hangs does not come back by itself.
        if is_lost && held.is_channel() {
            upstream.abandon(held);
        }
        upstream.moved();
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if self.admission == Admission::Trial {
            self.upstream.life().breaker.undecided(Instant::now());
        }
    }
}

async fn exchange(
    using: &Using,
    asking: UpstreamAsking<'_>,
    limit: Duration,
) -> Result<Answer, McpError> {
    let link = using.held().link();
    let asking = LinkAsking {
        method: asking.method,
        params: asking.params,
        headers: asking.headers.to_vec(),
        limit,
        aside: asking.aside,
        sent: asking.sent,
    };
    link.ask(asking).await
}

/// A result without secrets of the settings where it says that the tool failed: such texts quote addresses
/// and headers. The results of tools that succeed are theirs to give.
fn masked_failure(result: Box<RawValue>) -> Box<RawValue> {
    let says_so = || {
        let members = Members::of(&result).ok();
        members.is_some_and(|it| it.get("isError") == Some("true"))
    };
    if memmem::find(result.get().as_bytes(), b"isError").is_none() || !says_so() {
        return result;
    }
    match masked(result.get()) {
        Cow::Owned(text) => RawValue::from_string(text).unwrap_or_else(|_| withheld_failure()),
        Cow::Borrowed(_) => result,
    }
}

fn withheld_failure() -> Box<RawValue> {
    let text =
        "the tool failed; what it says of it holds a secret of the settings, and is withheld";
    let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    serde_json::value::to_raw_value(&result).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The error of a server without secrets of the settings, which it may repeat.
fn masked_error(error: RpcError) -> RpcError {
    let data = error.data.map(|data| match masked(data.get()) {
        Cow::Owned(text) => {
            RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
        }
        Cow::Borrowed(_) => data,
    });
    RpcError {
        message: masked(&error.message).into_owned(),
        data,
        ..error
    }
}

/// Whether the server did not take the request: its session is gone, or the link was closed before the
/// request was sent, for another request had met the same.
const fn is_unread(error: &McpError) -> bool {
    matches!(error, McpError::SessionExpired { .. } | McpError::Closed)
}

/// Whether an error says that the server, not the request, is at fault.
fn counts(error: &McpError) -> bool {
    match error {
        McpError::Http { status, .. } => is_overload(*status),
        McpError::Rpc { .. } | McpError::InvalidParams { .. } | McpError::Closed => false,
        _ => true,
    }
}

/// A status that may pass and is not about the request.
const fn is_overload(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..)
}
