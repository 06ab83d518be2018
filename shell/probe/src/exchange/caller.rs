use std::error::Error;
use std::fmt;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Method, Url};
use serde_json::Value;
use tokio::time::{Instant, timeout};
use toolwarden_http::{is_tls, shown};
use toolwarden_model::reply::{Failure, Mode, NotMeasured, Wire};

use super::loopback::{RECORDED_HEADER, Recorded, TRIAL_HEADER};
use super::{AUTHORIZING, Exchange, SentRequest};
use crate::observe::masked;
use crate::run::Target;
use crate::secret::{Key, Redactor};

/// The version of the interface of Anthropic that is spoken.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Sends requests to one provider and keeps what comes back.
#[derive(Clone)]
pub(crate) struct Caller {
    client: reqwest::Client,
    base: Url,
    headers: HeaderMap,
    /// The headers as they may be told, those that authorize left out.
    told: Vec<(String, String)>,
    /// Whether the provider is on this machine, where a replay may be.
    is_local: bool,
    redactor: Redactor,
    body_bytes: usize,
}

impl fmt::Debug for Caller {
    /// The headers hold the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("base", &shown(&self.base))
            .finish_non_exhaustive()
    }
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking<'a> {
    pub(crate) path: &'a str,
    pub(crate) body: &'a Value,
    pub(crate) mode: Mode,
    /// Which trial it belongs to, for a replay.
    pub(crate) trial: &'a str,
}

/// What came so far, kept when time is up.
#[derive(Debug, Default)]
struct Received {
    status: Option<u16>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    headers_ms: Option<f64>,
    first_event_ms: Option<f64>,
    recorded: Option<Recorded>,
}

impl Caller {
    /// Prepares requests; nothing is sent yet.
    pub(crate) fn new(
        target: &Target,
        redactor: Redactor,
        body_bytes: usize,
    ) -> Result<Self, NotMeasured> {
        let provider = &target.provider;
        let refused = |detail: String| NotMeasured {
            failure: Failure::NotAsked,
            detail: redactor.redact_text(&detail),
        };
        let base: Url = provider
            .base_url
            .parse()
            .map_err(|error| refused(format!("the base address is none: {error}")))?;
        let builder = toolwarden_http::client(&base).map_err(|error| refused(told(&error)))?;
        let client = builder
            .redirect(Policy::none())
            .build()
            .map_err(|error| refused(told(&error.without_url())))?;
        let mut headers = authorizing(provider.wire, target.key.as_ref())
            .ok_or_else(|| refused("the key has characters that no header can hold".to_owned()))?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut told = told_headers(&headers);
        for (name, value) in &target.headers.values {
            let pair = HeaderName::try_from(name).ok();
            let pair = pair.zip(HeaderValue::try_from(value.expose()).ok());
            let (header, mut value) =
                pair.ok_or_else(|| refused(format!("`{name}` with its value is no header")))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        // As written in the file: what a variable holds is not told.
        told.extend(provider.headers.iter().filter_map(|(name, text)| {
            let name = name.to_ascii_lowercase();
            (!AUTHORIZING.contains(&name.as_str())).then(|| (name, redactor.redact_text(text)))
        }));
        Ok(Self {
            client,
            base,
            headers,
            told,
            is_local: provider.is_local(),
            redactor,
            body_bytes,
        })
    }

    /// Sends one request and reads what comes back, as far as the time allows.
    pub(crate) async fn exchange(&self, asking: &Asking<'_>, within: Duration) -> Exchange {
        let begun = Instant::now();
        let mut received = Received::default();
        let headers = self.headers_of(asking);
        let request = self.sent(asking);
        let receiving = self.receive(asking, headers, begun, &mut received);
        let failure = match timeout(within, receiving).await {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure),
            Err(_elapsed) => Some(NotMeasured {
                failure: Failure::Timeout,
                detail: format!(
                    "no whole response within {} s, {} bytes came",
                    rounded(within),
                    received.body.len()
                ),
            }),
        };
        let total_ms = milliseconds(begun);
        let exchange = Exchange {
            request,
            status: received.status,
            headers: received.headers,
            body: self.redactor.redact_body(&received.body),
            headers_ms: received.headers_ms,
            first_event_ms: received.first_event_ms,
            total_ms,
            failure: failure.map(|it| NotMeasured {
                detail: self.redactor.redact_text(&it.detail),
                ..it
            }),
        };
        match received.recorded {
            Some(recorded) => as_recorded(exchange, recorded),
            None => exchange,
        }
    }

    async fn receive(
        &self,
        asking: &Asking<'_>,
        headers: HeaderMap,
        begun: Instant,
        received: &mut Received,
    ) -> Result<(), NotMeasured> {
        let request = self
            .client
            .request(Method::POST, joined(&self.base, asking.path))
            .headers(headers)
            .body(asking.body.to_string());
        let sent = request.send().await;
        let mut response = sent.map_err(|error| self.broken(error))?;
        received.headers_ms = Some(milliseconds(begun));
        received.status = Some(response.status().as_u16());
        for (name, value) in response.headers() {
            self.keep(name, value, received);
        }
        if response.status().is_redirection() {
            let location = response.headers().get(LOCATION);
            return Err(redirect(response.status().as_u16(), location));
        }
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(()),
                Err(error) => return Err(truncated(error, received.body.len())),
            };
            if received.first_event_ms.is_none() && !chunk.is_empty() {
                received.first_event_ms = Some(milliseconds(begun));
            }
            let room = self.body_bytes.saturating_sub(received.body.len());
            let kept = chunk.get(..room).unwrap_or(&chunk);
            received.body.extend_from_slice(kept);
            if kept.len() < chunk.len() {
                return Err(NotMeasured {
                    failure: Failure::TooLarge,
                    detail: format!("the body has more than {} bytes", self.body_bytes),
                });
            }
        }
    }

    fn headers_of(&self, asking: &Asking<'_>) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(accepted(asking.mode)));
        let trial = HeaderValue::from_str(asking.trial).ok();
        if let Some(trial) = trial.filter(|_| self.is_local) {
            headers.insert(TRIAL_HEADER, trial);
        }
        headers
    }

    fn sent(&self, asking: &Asking<'_>) -> SentRequest {
        let accept = ("accept".to_owned(), accepted(asking.mode).to_owned());
        SentRequest {
            method: Method::POST.to_string(),
            url_path: format!("/{}", asking.path.trim_start_matches('/')),
            headers: self.told.iter().cloned().chain([accept]).collect(),
            body: masked(asking.body.clone(), Some(&self.redactor)),
        }
    }

    fn keep(&self, name: &HeaderName, value: &HeaderValue, received: &mut Received) {
        let name = name.as_str();
        if name == RECORDED_HEADER {
            let recorded = serde_json::from_slice(value.as_bytes()).ok();
            received.recorded = recorded.filter(|_| self.is_local);
        } else if !AUTHORIZING.contains(&name) {
            received
                .headers
                .push((name.to_owned(), self.text_of(value)));
        }
    }

    fn text_of(&self, value: &HeaderValue) -> String {
        let text = String::from_utf8_lossy(value.as_bytes());
        self.redactor.redact_text(&text)
    }

    fn broken(&self, error: reqwest::Error) -> NotMeasured {
        // The address may carry a secret in its query.
        let error = error.without_url();
        let what = if is_tls(&error) {
            "no secure connection to"
        } else {
            "no answer from"
        };
        NotMeasured {
            failure: Failure::Connection,
            detail: format!("{what} {}: {}", shown(&self.base), told(&error)),
        }
    }
}

/// What was measured when the response was recorded, in place of what was measured now.
fn as_recorded(exchange: Exchange, recorded: Recorded) -> Exchange {
    let failure = recorded.failure.and_then(|(word, detail)| {
        let failure = Failure::from_word(&word)?;
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

/// The headers that a wire wants besides the body; none if the key cannot be sent.
fn authorizing(wire: Wire, key: Option<&Key>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    let (name, scheme) = match wire {
        Wire::OpenaiChat | Wire::OpenaiResponses => ("authorization", "Bearer "),
        Wire::Anthropic => ("x-api-key", ""),
        Wire::Gemini => ("x-goog-api-key", ""),
    };
    if let Some(key) = key {
        let mut value = HeaderValue::try_from(format!("{scheme}{}", key.expose())).ok()?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    if wire == Wire::Anthropic {
        let version = HeaderValue::from_static(ANTHROPIC_VERSION);
        headers.insert("anthropic-version", version);
    }
    Some(headers)
}

fn told_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let told = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str();
        let text = value
            .to_str()
            .ok()
            .filter(|_| !AUTHORIZING.contains(&name))?;
        Some((name.to_owned(), text.to_owned()))
    });
    told.collect()
}

const fn accepted(mode: Mode) -> &'static str {
    match mode {
        Mode::Nonstream => "application/json",
        Mode::Stream => "text/event-stream",
    }
}

/// The address of a path below the base address, which may have a query of its own.
fn joined(base: &Url, path: &str) -> Url {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut url = base.clone();
    let below = path.trim_start_matches('/');
    url.set_path(&format!("{}/{below}", base.path().trim_end_matches('/')));
    let queries = [base.query().unwrap_or_default(), query];
    let queries: Vec<&str> = queries.into_iter().filter(|it| !it.is_empty()).collect();
    url.set_query((!queries.is_empty()).then(|| queries.join("&")).as_deref());
    url
}

fn redirect(status: u16, location: Option<&HeaderValue>) -> NotMeasured {
    let location = location.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned());
    // What follows the question mark may be a secret of whoever redirects.
    let place = location
        .as_deref()
        .and_then(|it| it.split(['?', '#']).next());
    let place = place.unwrap_or("nowhere");
    NotMeasured {
        failure: Failure::Redirect,
        detail: format!("HTTP {status} leads to {place}, which is not followed"),
    }
}

fn truncated(error: reqwest::Error, bytes: usize) -> NotMeasured {
    NotMeasured {
        failure: Failure::Truncated,
        detail: format!(
            "the connection broke after {bytes} bytes of the body: {}",
            told(&error.without_url())
        ),
    }
}

/// An error with its causes, on one line.
fn told(error: &dyn Error) -> String {
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

/// Seconds, as precise as a reader wants them.
fn rounded(time: Duration) -> f64 {
    ((time.as_secs_f64() * 100.0).round() / 100.0).max(0.01)
}

fn milliseconds(since: Instant) -> f64 {
    // Microseconds are precise enough, and short in files.
    (since.elapsed().as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Headers, Provider};

    #[test]
    fn nobody_but_this_machine_is_told_of_trials() {
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
            let target = Target {
                provider: Provider::custom("a", address, "m"),
                key: None,
                headers: Headers::default(),
            };
            let caller = Caller::new(&target, Redactor::default(), 1).unwrap();
            let asking = Asking {
                path: "/chat/completions",
                body: &Value::Null,
                mode: Mode::Nonstream,
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
            assert_eq!(rounded(Duration::from_secs_f64(seconds)).to_string(), told);
        }
    }
}
