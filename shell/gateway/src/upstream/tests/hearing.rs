use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use toolwarden_mcp::{Audience, Face, FromServer};
use toolwarden_warden::guard::{Call, Clock, LiveGuard, LoadedPolicy, Log, OpenCall};
use toolwarden_warden::settings::ServerSettings;

use crate::upstream::{
    Hearing, LinkKey, Upstream, UpstreamCalling, UpstreamChange, UpstreamError, main_face,
};

/// Puts down what happens.
#[derive(Debug, Default)]
pub(super) struct Diary(Mutex<Vec<String>>);

#[derive(Debug)]
struct Deaf;

impl Audience for Deaf {
    fn hear(&self, _message: FromServer) {}
}

impl Hearing for Diary {
    fn audience(&self, _upstream: &Arc<Upstream>, _key: &LinkKey) -> Arc<dyn Audience> {
        Arc::new(Deaf)
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
        LinkKey::Variant(name) | LinkKey::Of(name) => name,
    }
}

impl Diary {
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
pub(super) fn upstream(settings: ServerSettings) -> (Arc<Upstream>, Arc<Diary>) {
    let diary = Arc::new(Diary::default());
    let hearing: Arc<dyn Hearing> = Arc::<Diary>::clone(&diary);
    (Upstream::new(Arc::new(settings), hearing), diary)
}

/// A guard's word that a tool may be called.
pub(super) fn permit(tool: &str) -> OpenCall {
    let policy = format!("tools: {{{tool}: {{}}}}");
    let here = std::path::Path::new(".");
    let policy = LoadedPolicy::of_text(policy.as_bytes(), here, here).unwrap();
    let guard = LiveGuard::new(policy.guard, Log::recent(), Clock::default()).unwrap();
    let call = Call {
        tool,
        principal: "tester",
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
    let open = permit(tool);
    let params = raw(&json!({"name": tool, "arguments": {}}));
    let calling = UpstreamCalling {
        limit,
        ..UpstreamCalling::new(&params)
    };
    let answer = upstream.call(&open, key, &agent(), calling).await;
    open.succeeded_unseen();
    Ok(serde_json::from_str(answer?.unwrap().get()).unwrap())
}

/// What the agent says of itself.
pub(super) fn agent() -> Face {
    Face {
        capabilities: raw(&json!({"roots": {}})).into(),
        ..main_face()
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
