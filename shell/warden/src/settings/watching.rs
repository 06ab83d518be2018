//! How definitions and results are watched.

use std::collections::BTreeMap;
use std::time::Duration;

use toolwarden_drift::Class;
use toolwarden_guard::OutputMode;

use crate::comparison::ComparisonTime;

/// How definitions and results are watched.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchSettings {
    /// What becomes of a tool whose definition drifted, by class.
    pub on_drift: BTreeMap<Class, OnDrift>,
    /// What becomes of a tool that a pinned list did not have.
    pub on_new: OnDrift,
    /// What becomes of a tool with findings in its text when it is first seen.
    pub on_finding: OnDrift,
    /// The time between two looks at a list.
    pub every: Duration,
    /// How old a look may be when a tool is called; older, and the list is asked for first. None means
    /// that calls do not look.
    pub before_call: Option<Duration>,
    /// What becomes of results that do not fit the output schema.
    pub output: OutputMode,
    /// Whether hidden characters are taken out of results and definitions on their way to the agent.
    pub strip_hidden: bool,
    /// Whether results are held to the shape of earlier ones.
    pub shapes: bool,
    /// The most time to compare one tool with its pin.
    pub compare_time: Duration,
    /// The most time to compare all tools of a list with their pins.
    pub compare_list_time: Duration,
    /// What becomes of tools when their server is first seen.
    pub trust: Trust,
}

/// What becomes of the tools of a server that was never seen before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// They are pinned and served, unless their text speaks against them.
    #[default]
    FirstUse,
    /// They wait for approval, and nothing of the server is served before.
    Review,
}

impl WatchSettings {
    /// How long comparisons of a list may take.
    #[must_use]
    pub const fn comparison_time(&self) -> ComparisonTime {
        ComparisonTime {
            tool: self.compare_time,
            list: self.compare_list_time,
        }
    }
}

/// What becomes of a tool that drifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDrift {
    /// It is served, and an alert raised.
    Serve,
    /// It is not listed and not callable while it is not as pinned.
    Hide,
    /// As hidden, and told apart in refusals, metrics and lists as a matter for approval.
    Quarantine,
    /// Nothing of the server is served.
    BlockServer,
}

impl Default for WatchSettings {
    /// A tool is served while it is as pinned, means the same, or takes more than before. A text that
    /// changed alters what a model does, so it waits for approval as a changed schema does.
    fn default() -> Self {
        let time = ComparisonTime::default();
        let on_drift = Class::ALL.map(|class| {
            let action = match class {
                Class::Equivalent | Class::Info | Class::Widened => OnDrift::Serve,
                Class::Behavioural
                | Class::Structural
                | Class::Text
                | Class::Added
                | Class::Ignored
                | Class::Unknown
                | Class::Trust
                | Class::Breaking => OnDrift::Quarantine,
            };
            (class, action)
        });
        Self {
            on_drift: BTreeMap::from(on_drift),
            on_new: OnDrift::Quarantine,
            on_finding: OnDrift::Quarantine,
            every: Duration::from_secs(300),
            before_call: None,
            output: OutputMode::Warn,
            strip_hidden: false,
            shapes: true,
            compare_time: time.tool,
            compare_list_time: time.list,
            trust: Trust::FirstUse,
        }
    }
}
