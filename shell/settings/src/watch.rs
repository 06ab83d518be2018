//! How definitions and results are watched.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use toolwarden_drift::{ChangeClass, ToolwatchChangeType};
use toolwarden_guard::OutputMode;

use crate::comparison_timeouts::ComparisonTimeouts;

/// How definitions and results are watched.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchSettings {
    /// The treatment of a tool whose definition drifted, by class.
    pub on_drift: BTreeMap<ChangeClass, OnDrift>,
    /// The treatment of a tool that is not in the pinned list.
    pub on_new: OnDrift,
    /// The treatment of a new tool with findings in its text.
    pub on_finding: OnDrift,
    /// How often a list is checked.
    pub check_interval: Duration,
    /// The maximum age of the last check when a tool is called; if it is older, the gateway checks the list
    /// first. `None` means that calls do not check.
    pub max_age_before_call: Option<Duration>,
    /// The treatment of results that do not satisfy the output schema.
    pub output: OutputMode,
    /// Whether the gateway removes hidden characters from results and definitions before it sends them to
    /// the agent.
    pub strip_hidden: bool,
    /// Whether results are compared with the shape of earlier ones.
    pub shapes: bool,
    /// How many results form the shape that later results are compared with.
    pub learn_results: u64,
    /// How far back results are compared with the pinned shape.
    pub window: Duration,
    /// The change types that raise alerts.
    pub alert_on: Vec<ToolwatchChangeType>,
    /// The tools that the commands under `watch` check; an empty list means all. The gateway checks all.
    pub tools: Vec<String>,
    /// The maximum time to compare one tool with its pin.
    pub compare_time: Duration,
    /// The maximum time to compare all tools of a list with their pins.
    pub compare_list_time: Duration,
    /// The treatment of the tools of a new server.
    pub trust: TrustMode,
}

/// A server whose list of tools another program writes to files. The commands under `watch` check it; the
/// gateway does not offer it.
#[derive(Clone, Debug, PartialEq)]
pub struct FileServer {
    /// Its name.
    pub name: String,
    /// The files.
    pub files: Vec<PathBuf>,
    /// The scope of its pins.
    pub scope: Option<String>,
    /// How its definitions are watched.
    pub watch: WatchSettings,
}

/// A call that shows what a tool returns.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleCall {
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
}

/// The treatment of the tools of a new server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrustMode {
    /// They are pinned and served, unless their text is suspicious.
    #[default]
    FirstUse,
    /// They need approval, and nothing of the server is served before that.
    Review,
}

impl WatchSettings {
    /// The time limits for comparing a list.
    #[must_use]
    pub const fn comparison_timeouts(&self) -> ComparisonTimeouts {
        ComparisonTimeouts {
            tool: self.compare_time,
            list: self.compare_list_time,
        }
    }
}

/// The treatment of a drifted tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDrift {
    /// It is served, and an alert raised.
    Serve,
    /// It is not listed and cannot be called while it does not match its pin.
    Hide,
    /// Like hidden, and denials, metrics and lists show that it needs approval.
    Quarantine,
    /// Nothing of the server is served.
    BlockServer,
}

impl Default for WatchSettings {
    /// The gateway serves a tool while it matches its pin, means the same, or accepts more than before. A
    /// changed text alters what a model does, so it needs approval like a changed schema.
    fn default() -> Self {
        let time = ComparisonTimeouts::default();
        let on_drift = ChangeClass::ALL.map(|class| {
            let action = match class {
                ChangeClass::Equivalent | ChangeClass::Info | ChangeClass::Widened => {
                    OnDrift::Serve
                }
                ChangeClass::Behavioural
                | ChangeClass::Structural
                | ChangeClass::Text
                | ChangeClass::Added
                | ChangeClass::Ignored
                | ChangeClass::Unknown
                | ChangeClass::Trust
                | ChangeClass::Breaking => OnDrift::Quarantine,
            };
            (class, action)
        });
        Self {
            on_drift: BTreeMap::from(on_drift),
            on_new: OnDrift::Quarantine,
            on_finding: OnDrift::Quarantine,
            check_interval: Duration::from_secs(300),
            max_age_before_call: None,
            output: OutputMode::Warn,
            strip_hidden: false,
            shapes: true,
            learn_results: 30,
            window: Duration::from_secs(24 * 3600),
            alert_on: ToolwatchChangeType::ALL.to_vec(),
            tools: Vec::new(),
            compare_time: time.tool,
            compare_list_time: time.list,
            trust: TrustMode::FirstUse,
        }
    }
}
