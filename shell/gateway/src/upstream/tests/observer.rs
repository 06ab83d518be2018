use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use toolwarden_live_guard::{
    AuditLog, Call, CallDestination, CallParams, Clock, LiveGuard, LoadedPolicy, OpenCall,
};
use toolwarden_mcp::{ClientInfo, MessageHandler, ServerMessage};
use toolwarden_settings::ServerSettings;

use crate::upstream::{
    LinkKey, Upstream, UpstreamCall, UpstreamChange, UpstreamError, UpstreamObserver,
    gateway_client_info,
};

/// Records what happens.
#[derive(Debug, Default)]
pub(super) struct RecordingObserver(Mutex<Vec<String>>);

#[derive(Debug)]
struct IgnoreMessages;

impl MessageHandler for IgnoreMessages {
    fn handle(&self, _message: ServerMessage) {}
}

impl UpstreamObserver for RecordingObserver {
    fn audience(&self, _upstream: &Arc<Upstream>, _key: &LinkKey) -> Arc<dyn MessageHandler> {
        Arc::new(IgnoreMessages)
    }

    fn changed(&self, upstream: &Arc<Upstream>, what: UpstreamChange) {
        let line = match what {
            UpstreamChange::Connected { key } => format!("connected {}", name(&key)),
            UpstreamChange::Lost { key, .. } => format!("lost {}", name(&key)),
            UpstreamChange::Health => upstream.status().health.as_str().to_owned(),
        };
        self.0.lock().unwrap().push(line);
    }
}

fn name(key: &LinkKey) -> &str {
    match key {
        LinkKey::Main => "main",
        LinkKey::Variant(name) | LinkKey::Conversation(name) => name,
    }
}

impl RecordingObserver {
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Links opened and lost.
    pub(super) fn links(&self) -> Vec<String> {
        let mut lines = self.lines();
        lines.retain(|line| line.contains(' '));
        lines
    }
}

/// A server and what happens to it.
pub(super) fn upstream(settings: ServerSettings) -> (Arc<Upstream>, Arc<RecordingObserver>) {
    let diary = Arc::new(RecordingObserver::default());
    let hearing: Arc<dyn UpstreamObserver> = Arc::<RecordingObserver>::clone(&diary);
    (Upstream::new(Arc::new(settings), hearing), diary)
}

/// A call that a guard decided on.
pub(super) fn decide(params: &CallParams<'_>) -> OpenCall {
    let tool = params.name();
    let policy = format!("tools: {{{tool}: {{}}}}");
    let here = std::path::Path::new(".");
    let policy = LoadedPolicy::of_text(policy.as_bytes(), here, here).unwrap();
    let guard = LiveGuard::new(policy.guard, AuditLog::recent(), Clock::default()).unwrap();
    let call = Call {
        tool,
        principal: "tester",
        arguments: Arc::clone(params.arguments()),
        ..Call::default()
    };
    guard.decide(&call).unwrap()
}

/// Calls a tool; the result is the value the server sent.
pub(super) async fn call(
    upstream: &Arc<Upstream>,
    key: &LinkKey,
    tool: &str,
) -> Result<Value, UpstreamError> {
    call_within(upstream, key, tool, None).await
}

pub(super) async fn call_within(
    upstream: &Arc<Upstream>,
    key: &LinkKey,
    tool: &str,
    limit: Option<Duration>,
) -> Result<Value, UpstreamError> {
    let params = raw(&json!({"name": tool, "arguments": {}}));
    let params = CallParams::read(&params).unwrap();
    let mut open = decide(&params);
    let route = CallDestination {
        server: upstream.name(),
        tool,
        private_meta: "",
    };
    let permitted = open.permitted_call(&params, route).unwrap();
    let calling = UpstreamCall {
        timeout: limit,
        ..UpstreamCall::default()
    };
    let (_sent, answer) = upstream.call(permitted, key, &agent(), calling).await;
    open.report_success_unchecked();
    Ok(serde_json::from_str(answer?.unwrap().get()).unwrap())
}

/// The agent's description of itself.
pub(super) fn agent() -> ClientInfo {
    ClientInfo {
        capabilities: raw(&json!({"roots": {}})).into(),
        ..gateway_client_info()
    }
}

pub(super) fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

/// Waits until something is so.
pub(super) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}
