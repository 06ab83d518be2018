use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use toolwarden_guard::{ToolIdentity, ToolPolicy};
use toolwarden_live_guard::{AuditLog, Call, CallParams, Clock, LiveGuard, LoadedPolicy, OpenCall};
use toolwarden_mcp::{ClientInfo, McpRequest, MessageHandler, ServerMessage};
use toolwarden_model::{OwnName, ServerName};
use toolwarden_settings::ServerSettings;

use crate::upstream::{
    LinkKey, LinkRoute, Upstream, UpstreamChange, UpstreamError, UpstreamObserver,
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

/// A call of a server's tool that a guard decided on.
pub(super) fn decide(server: &str, params: &CallParams<'_>) -> OpenCall {
    let tool = params.name().as_str();
    let policy = format!("tools: {{{tool}: {{}}}}");
    let here = std::path::Path::new(".");
    let policy = LoadedPolicy::of_text(policy.as_bytes(), here, here).unwrap();
    let guard = LiveGuard::new(policy.guard, AuditLog::recent(), Clock::default()).unwrap();
    let identity = ToolIdentity {
        server: ServerName::new(server),
        qualified: format!("{server}__{tool}").into(),
        name: OwnName::new(tool),
        alone: true,
        imitates: None,
        overlaps: None,
    };
    let identities = [(tool.into(), identity)].into();
    let listed = ToolPolicy::discovered(tool, None, None, None, None);
    guard.discover_served([listed], BTreeMap::new(), Vec::new(), identities);
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
    let mut open = decide(upstream.name(), &params);
    let permitted = open.permitted_call(&params, "").unwrap();
    let info = agent();
    let route = LinkRoute::new(key, &info);
    let mut request = McpRequest::new("tools/call", None);
    request.timeout = limit;
    let (sent, mut answer) = upstream.call(permitted, route, request).await;
    // As the gateway does: the permit says whether the same call may be sent over a new session.
    if let Err(UpstreamError::SessionExpired { was_sent, .. }) = answer
        && let Ok(again) = sent.retry(was_sent)
    {
        answer = upstream.call(again, route, request).await.1;
    }
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
