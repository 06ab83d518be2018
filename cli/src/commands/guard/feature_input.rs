//! Uses of resources, prompts, skills and methods, as people and the log write them down.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolwarden_guard::{Feature, FeatureKind, ToolPolicy};
use toolwarden_live_guard::LiveGuard;
use toolwarden_model::json::Object;

use crate::args::CallArgs;

/// What is used where that is not a tool.
#[derive(Debug)]
pub(super) struct FeatureInput {
    kind: FeatureKind,
    name: String,
    /// None where no server offers it.
    server: Option<String>,
    method: String,
}

impl FeatureInput {
    /// What the arguments of a command name.
    pub(super) fn from_args(args: &CallArgs) -> Option<Self> {
        let named = [
            (FeatureKind::Resource, &args.resource, "resources/read"),
            (FeatureKind::Prompt, &args.prompt, "prompts/get"),
            (FeatureKind::Skill, &args.skill, "skills/get"),
        ];
        let mut named = named.into_iter();
        named.find_map(|(kind, name, method)| {
            Some(Self {
                kind,
                name: name.clone()?,
                server: Some(args.server.clone().unwrap_or_default()),
                method: method.to_owned(),
            })
        })
    }

    /// What a decision of the log is about; none where it is about a tool.
    pub(super) fn from_record(tool: &str, body: Option<&Object>) -> Option<Self> {
        let text = |key: &str| body?.get(key).and_then(Value::as_str);
        let kind = FeatureKind::from_word(text("kind")?)?;
        let name = tool.strip_prefix(kind.as_str())?.strip_prefix(':')?;
        (kind != FeatureKind::Tool).then(|| Self {
            kind,
            name: name.to_owned(),
            server: text("server").map(str::to_owned),
            method: text("method").unwrap_or_default().to_owned(),
        })
    }

    pub(super) fn feature(&self) -> Feature<'_> {
        Feature {
            kind: self.kind,
            name: &self.name,
            server: self.server.as_deref(),
            method: &self.method,
            ..Feature::default()
        }
    }

    /// Makes its server known to a guard, with the rules of a server that has no `tool_defaults`.
    pub(super) fn register_server(&self, guard: &LiveGuard) {
        let server = self.server.as_deref().map(|server| {
            let rules = ToolPolicy::discovered("", None, None, None, None);
            (Arc::from(server), Arc::new(rules))
        });
        guard.set_servers(server.into_iter().collect::<BTreeMap<_, _>>());
    }
}
