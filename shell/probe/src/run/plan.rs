use std::sync::Arc;

use serde_json::Value;
use toolwarden_canon::request::{ModelRequest, RequestBody, request};
use toolwarden_model::json::Object;
use toolwarden_model::reply::StreamMode;

use super::RunSettings;
use super::conversation::Conversation;
use crate::provider::Provider;
use crate::suite::{ProbeCase, ProbeSuite};

/// One planned trial.
#[derive(Clone, Debug)]
pub(crate) struct PlannedTrial {
    pub(crate) case_index: usize,
    pub(crate) case: String,
    pub(crate) mode: StreamMode,
    pub(crate) repetition: u32,
    pub(crate) request: Arc<RequestBody>,
    /// What follows the reply, if the case has several turns.
    pub(crate) conversation: Option<Arc<Conversation>>,
}

/// The trials of a suite. Each case runs once before any is repeated, so that a run that ends early
/// has covered all cases.
pub(crate) fn plan_trials(
    provider: &Provider,
    suite: &ProbeSuite,
    settings: &RunSettings,
) -> Vec<PlannedTrial> {
    let modes = settings.modes.as_ref().unwrap_or(&suite.sampling.modes);
    let mut first = Vec::new();
    for (case_index, case) in suite.cases.iter().enumerate() {
        for mode in modes {
            first.push(PlannedTrial {
                case_index,
                case: case.name.clone(),
                mode: *mode,
                repetition: 0,
                request: Arc::new(request_body(provider, suite, case, *mode)),
                conversation: Conversation::of(provider, suite, case, *mode).map(Arc::new),
            });
        }
    }
    let repeat = settings.repeat.unwrap_or(suite.sampling.repeat);
    let start = settings.first_repetition;
    let repetitions = (start..start.saturating_add(repeat.get())).flat_map(|repetition| {
        first.iter().map(move |it| PlannedTrial {
            repetition,
            ..it.clone()
        })
    });
    repetitions.collect()
}

fn request_body(
    provider: &Provider,
    suite: &ProbeSuite,
    case: &ProbeCase,
    mode: StreamMode,
) -> RequestBody {
    let ask = ModelRequest {
        model: &provider.model_id,
        messages: &case.messages,
        tools: &suite.tools,
        tool_choice: case.tool_choice.as_ref(),
        mode,
        temperature: suite.sampling.temperature,
        max_tokens: None,
        extra: &extra_members(provider, suite, case),
    };
    request(provider.wire, &ask)
}

/// The provider's members override those of the case, which override those of the suite.
pub(super) fn extra_members(provider: &Provider, suite: &ProbeSuite, case: &ProbeCase) -> Object {
    let mut extra = Object::new();
    for more in [&suite.extra, &case.extra, &provider.extra_body] {
        merge(&mut extra, more);
    }
    extra
}

/// Merges members into an object, recursively for nested objects.
fn merge(into: &mut Object, more: &Object) {
    for (name, value) in more {
        match (into.get_mut(name), value) {
            (Some(Value::Object(own)), Value::Object(more)) => merge(own, more),
            _ => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}
