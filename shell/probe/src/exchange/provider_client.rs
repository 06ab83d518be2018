use std::error::Error;
use std::fmt;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Method, Url};
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};
use toolwarden_http::{display_url, is_tls_error};
use toolwarden_model::reply::{NotMeasured, StreamMode, TrialFailure, WireApi};

use super::decompress::decompress;
use super::replay_headers::{RECORDED_HEADER, RecordedMeasurement, TRIAL_HEADER};
use super::{AUTH_HEADERS, Exchange, SentRequest};
use crate::probe_target::ProbeTarget;
use crate::reply_observer::mask_value;
use crate::secret::{ApiKey, Redactor};

/// The largest body whose secrets are masked on the async runtime's own threads.
const LARGE_BODY_BYTES: usize = 1 << 18;

/// The Anthropic API version that requests name.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Sends requests to one provider and returns the captured exchanges.
#[derive(Clone)]
pub(crate) struct ProviderClient {
    client: reqwest::Client,
    base: Url,
    headers: HeaderMap,
    /// The headers that may be shown, without those that authorize.
    visible_headers: Vec<(String, String)>,
    /// Whether the provider is on this machine, where a replay server may run.
    is_local: bool,
    redactor: Redactor,
    body_bytes: usize,
}

impl fmt::Debug for ProviderClient {
    /// The headers contain the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("base", &display_url(&self.base))
            .finish_non_exhaustive()
    }
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProviderRequest<'a> {
    pub(crate) path: &'a str,
    pub(crate) body: &'a Value,
    pub(crate) mode: StreamMode,
    /// The trial it belongs to, for a replay.
    pub(crate) trial: &'a str,
}

/// What was received so far; kept when the request times out.
#[derive(Debug, Default)]
struct PartialResponse {
    status: Option<u16>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    headers_ms: Option<f64>,
    first_event_ms: Option<f64>,
    recorded: Option<RecordedMeasurement>,
}

impl ProviderClient {
    /// Prepares requests; sends nothing yet.
    pub(crate) fn new(
        target: &ProbeTarget,
        redactor: Redactor,
        body_bytes: usize,
    ) -> Result<Self, NotMeasured> {
        let provider = &target.provider;
        let refused = |detail: String| NotMeasured {
            failure: TrialFailure::NotAsked,
            detail: redactor.redact_text(&detail),
        };
        let base: Url = provider
            .base_url
            .parse()
            .map_err(|error| refused(format!("the base address is invalid: {error}")))?;
        let builder =
            toolwarden_http::client(&base).map_err(|error| refused(error_chain(&error)))?;
        let client = builder
            .redirect(Policy::none())
            .build()
            .map_err(|error| refused(error_chain(&error.without_url())))?;
        let mut headers = auth_headers(provider.wire, target.key.as_ref())
            .ok_or_else(|| refused("the key has characters invalid in headers".to_owned()))?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut told = without_auth_headers(&headers);
        for (name, value) in &target.headers.values {
            let pair = HeaderName::try_from(name).ok();
            let pair = pair.zip(HeaderValue::try_from(value.expose()).ok());
            let (header, mut value) =
                pair.ok_or_else(|| refused(format!("`{name}` has an invalid name or value")))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        // The values as written in the file: the content of a variable is not shown.
        told.extend(provider.headers.iter().filter_map(|(name, text)| {
            let name = name.to_ascii_lowercase();
            (!AUTH_HEADERS.contains(&name.as_str())).then(|| (name, redactor.redact_text(text)))
        }));
        Ok(Self {
            client,
            base,
            headers,
            visible_headers: told,
            is_local: provider.is_local(),
            redactor,
            body_bytes,
        })
    }

    /// Sends one request and reads the response until the timeout.
    pub(crate) async fn exchange(
        &self,
        asking: &ProviderRequest<'_>,
        within: Duration,
    ) -> Exchange {
        let begun = Instant::now();
        let mut received = PartialResponse::default();
        let headers = self.headers_of(asking);
        let request = self.sent_request(asking);
        let receiving = self.receive(asking, headers, begun, &mut received);
        let failure = match timeout(within, receiving).await {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure),
            Err(_elapsed) => Some(NotMeasured {
                failure: TrialFailure::Timeout,
                detail: format!(
                    "no complete response within {} s, {} bytes received",
                    rounded_seconds(within),
                    received.body.len()
                ),
            }),
        };
        let total_ms = milliseconds(begun);
        let failure = failure.or_else(|| self.decompress_body(&mut received));
        let body = self.redact_body(std::mem::take(&mut received.body)).await;
        let exchange = Exchange {
            request,
            status: received.status,
            headers: received.headers,
            body,
            headers_ms: received.headers_ms,
            first_event_ms: received.first_event_ms,
            total_ms,
            failure: failure.map(|it| NotMeasured {
                detail: self.redactor.redact_text(&it.detail),
                ..it
            }),
        };
        match received.recorded {
            Some(recorded) => with_recorded_times(exchange, recorded),
            None => exchange,
        }
    }

    async fn receive(
        &self,
        asking: &ProviderRequest<'_>,
        headers: HeaderMap,
        begun: Instant,
        received: &mut PartialResponse,
    ) -> Result<(), NotMeasured> {
        let request = self
            .client
            .request(Method::POST, join_path(&self.base, asking.path))
            .headers(headers)
            .body(asking.body.to_string());
        let sent = request.send().await;
        let mut response = sent.map_err(|error| self.connection_failure(error))?;
        received.headers_ms = Some(milliseconds(begun));
        received.status = Some(response.status().as_u16());
        for (name, value) in response.headers() {
            self.record_header(name, value, received);
        }
        if response.status().is_redirection() {
            let location = response.headers().get(LOCATION);
            return Err(redirect_failure(response.status().as_u16(), location));
        }
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(()),
                Err(error) => return Err(truncated_failure(error, received.body.len())),
            };
            if received.first_event_ms.is_none() && !chunk.is_empty() {
                received.first_event_ms = Some(milliseconds(begun));
            }
            let room = self.body_bytes.saturating_sub(received.body.len());
            let kept = chunk.get(..room).unwrap_or(&chunk);
            received.body.extend_from_slice(kept);
            if kept.len() < chunk.len() {
                return Err(NotMeasured {
                    failure: TrialFailure::TooLarge,
                    detail: format!("the body has more than {} bytes", self.body_bytes),
                });
            }
        }
    }

    /// The body with secrets masked. Large bodies take seconds, which must not delay timers.
    async fn redact_body(&self, body: Vec<u8>) -> Vec<u8> {
        if body.len() <= LARGE_BODY_BYTES {
            return self.redactor.redact_body(&body);
        }
        let redactor = self.redactor.clone();
        let redacted = spawn_blocking(move || redactor.redact_body(&body)).await;
        // Without its secrets masked, a body is not kept.
        redacted.unwrap_or_default()
    }

    /// Decompresses the body in place. A body that stays compressed is dropped, because secrets in it
    /// cannot be masked.
    fn decompress_body(&self, received: &mut PartialResponse) -> Option<NotMeasured> {
        let encoding = received.headers.iter();
        let encoding = encoding
            .clone()
            .find(|(name, _)| name == "content-encoding");
        let encoding = encoding.map(|(_, value)| value.as_str());
        match decompress(encoding, &received.body, self.body_bytes) {
            Ok(None) => None,
            Ok(Some(body)) => {
                received.body = body;
                // The recorded headers describe the recorded body.
                let described = ["content-encoding", "content-length"];
                received
                    .headers
                    .retain(|(name, _)| !described.contains(&name.as_str()));
                None
            }
            Err(failure) => {
                received.body.clear();
                Some(failure)
            }
        }
    }

    fn headers_of(&self, asking: &ProviderRequest<'_>) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(accept_header(asking.mode)));
        let trial = HeaderValue::from_str(asking.trial).ok();
        if let Some(trial) = trial.filter(|_| self.is_local) {
            headers.insert(TRIAL_HEADER, trial);
        }
        headers
    }

    fn sent_request(&self, asking: &ProviderRequest<'_>) -> SentRequest {
        let accept = ("accept".to_owned(), accept_header(asking.mode).to_owned());
        SentRequest {
            method: Method::POST.to_string(),
            url_path: format!("/{}", asking.path.trim_start_matches('/')),
            headers: self
                .visible_headers
                .iter()
                .cloned()
                .chain([accept])
                .collect(),
            body: mask_value(asking.body.clone(), Some(&self.redactor)),
        }
    }

    fn record_header(
        &self,
        name: &HeaderName,
        value: &HeaderValue,
        received: &mut PartialResponse,
    ) {
        let name = name.as_str();
        if name == RECORDED_HEADER {
            let recorded = serde_json::from_slice(value.as_bytes()).ok();
            received.recorded = recorded.filter(|_| self.is_local);
        } else if !AUTH_HEADERS.contains(&name) {
            received
                .headers
                .push((name.to_owned(), self.text_of(value)));
        }
    }

    fn text_of(&self, value: &HeaderValue) -> String {
        let text = String::from_utf8_lossy(value.as_bytes());
        self.redactor.redact_text(&text)
    }

    fn connection_failure(&self, error: reqwest::Error) -> NotMeasured {
        // The query of the address may contain a secret.
        let error = error.without_url();
        let what = if is_tls_error(&error) {
            "no secure connection to"
        } else {
            "no answer from"
        };
        NotMeasured {
            failure: TrialFailure::Connection,
            detail: format!(
                "{what} {}: {}",
                display_url(&self.base),
                error_chain(&error)
            ),
        }
    }
}

/// Replaces the measurements of this request with those of the recording.
fn with_recorded_times(exchange: Exchange, recorded: RecordedMeasurement) -> Exchange {
    let failure = recorded.failure.and_then(|(word, detail)| {
        let failure = TrialFailure::from_word(&word)?;
        Some(NotMeasured { failure, detail })
    });
    Exchange {
        status: recorded.status,
        headers_ms: recorded.headers_ms,
        first_event_ms: recorded.first_event_ms,
        total_ms: recorded.total_ms,
        failure: failure.or(exchange.failure),
        ..exchange
    }
}

/// The headers that a wire requires besides the body; `None` if the key cannot be sent.
fn auth_headers(wire: WireApi, key: Option<&ApiKey>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    let (name, scheme) = match wire {
        WireApi::OpenaiChat | WireApi::OpenaiResponses => ("authorization", "Bearer "),
        WireApi::Anthropic => ("x-api-key", ""),
        WireApi::Gemini => ("x-goog-api-key", ""),
    };
    if let Some(key) = key {
        let mut value = HeaderValue::try_from(format!("{scheme}{}", key.expose())).ok()?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    if wire == WireApi::Anthropic {
        let version = HeaderValue::from_static(ANTHROPIC_VERSION);
        headers.insert("anthropic-version", version);
    }
    Some(headers)
}

fn without_auth_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let told = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str();
        let text = value
            .to_str()
            .ok()
            .filter(|_| !AUTH_HEADERS.contains(&name))?;
        Some((name.to_owned(), text.to_owned()))
    });
    told.collect()
}

const fn accept_header(mode: StreamMode) -> &'static str {
    match mode {
        StreamMode::Nonstream => "application/json",
        StreamMode::Stream => "text/event-stream",
    }
}

/// Appends a path to the base address, which may have its own query.
fn join_path(base: &Url, path: &str) -> Url {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut url = base.clone();
    let below = path.trim_start_matches('/');
    url.set_path(&format!("{}/{below}", base.path().trim_end_matches('/')));
    let queries = [base.query().unwrap_or_default(), query];
    let queries: Vec<&str> = queries.into_iter().filter(|it| !it.is_empty()).collect();
    url.set_query((!queries.is_empty()).then(|| queries.join("&")).as_deref());
    url
}

fn redirect_failure(status: u16, location: Option<&HeaderValue>) -> NotMeasured {
    let location = location.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned());
    // The query of the redirect target may contain a secret of the redirecting server.
    let place = location
        .as_deref()
        .and_then(|it| it.split(['?', '#']).next());
    let place = place.unwrap_or("nowhere");
    NotMeasured {
        failure: TrialFailure::Redirect,
        detail: format!("HTTP {status} redirects to {place}, which is not followed"),
    }
}

fn truncated_failure(error: reqwest::Error, bytes: usize) -> NotMeasured {
    NotMeasured {
        failure: TrialFailure::Truncated,
        detail: format!(
            "the connection broke after {bytes} bytes of the body: {}",
            error_chain(&error.without_url())
        ),
    }
}

/// An error with its causes, on one line.
fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(current) = cause {
        let words = current.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = current.source();
    }
    text
}

/// Seconds, rounded for display.
fn rounded_seconds(time: Duration) -> f64 {
    ((time.as_secs_f64() * 100.0).round() / 100.0).max(0.01)
}

fn milliseconds(since: Instant) -> f64 {
    // Microseconds are precise enough, and short in files.
    (since.elapsed().as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Provider, ProviderHeaders};

    #[test]
    fn trial_header_is_sent_only_to_loopback() {
        for (address, is_told) in [
            ("http://127.0.0.1:8000/v1", true),
            ("http://127.8.9.1/v1", true),
            ("http://[::1]:8000", true),
            ("http://localhost:8000", true),
            ("http://0.0.0.0:8000", false),
            ("http://192.168.0.7/v1", false),
            ("http://localhost.example.com", false),
            ("http://127.0.0.1.example.com", false),
            ("https://api.example.com/127.0.0.1", false),
        ] {
            let target = ProbeTarget {
                provider: Provider::custom("a", address, "m"),
                key: None,
                headers: ProviderHeaders::default(),
            };
            let caller = ProviderClient::new(&target, Redactor::default(), 1).unwrap();
            let asking = ProviderRequest {
                path: "/chat/completions",
                body: &Value::Null,
                mode: StreamMode::Nonstream,
                trial: "nonstream/0/1",
            };
            let sent = caller.headers_of(&asking);
            assert_eq!(sent.contains_key(TRIAL_HEADER), is_told, "{address}");
        }
    }

    #[test]
    fn times_are_rounded() {
        for (seconds, told) in [
            (60.0, "60"),
            (1.999_173_734_999, "2"),
            (0.3, "0.3"),
            (0.001, "0.01"),
        ] {
            assert_eq!(
                rounded_seconds(Duration::from_secs_f64(seconds)).to_string(),
                told
            );
        }
    }
}
