use std::sync::Arc;

use serde_json::Value;
use toolwarden_canon::request::{Ask, RequestBody, request};
use toolwarden_model::json::Object;
use toolwarden_model::reply::Mode;

use super::Settings;
use crate::provider::Provider;
use crate::suite::{Case, Suite};

/// One trial that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) case_index: usize,
    pub(crate) case: String,
    pub(crate) mode: Mode,
    pub(crate) repetition: u32,
    pub(crate) request: Arc<RequestBody>,
}

/// The trials of a suite, each case once before any is repeated, so that a run that ends early has
/// seen all of them.
pub(crate) fn planned(provider: &Provider, suite: &Suite, settings: &Settings) -> Vec<Planned> {
    let modes = settings.modes.as_ref().unwrap_or(&suite.sampling.modes);
    let mut first = Vec::new();
    for (case_index, case) in suite.cases.iter().enumerate() {
        for mode in modes {
            first.push(Planned {
                case_index,
                case: case.name.clone(),
                mode: *mode,
                repetition: 0,
                request: Arc::new(asked(provider, suite, case, *mode)),
            });
        }
    }
    let repeat = settings.repeat.unwrap_or(suite.sampling.repeat);
    let repetitions = (0..repeat.get()).flat_map(|repetition| {
        first.iter().map(move |it| Planned {
            repetition,
            ..it.clone()
        })
    });
    repetitions.collect()
}

fn asked(provider: &Provider, suite: &Suite, case: &Case, mode: Mode) -> RequestBody {
    // What a provider needs wins over what a case wants, and that over the suite.
    let mut extra = Object::new();
    for more in [&suite.extra, &case.extra, &provider.extra_body] {
        merge(&mut extra, more);
    }
    let ask = Ask {
        model: &provider.model_id,
        messages: &case.messages,
        tools: &suite.tools,
        tool_choice: case.tool_choice.as_ref(),
        mode,
        temperature: suite.sampling.temperature,
        max_tokens: None,
        extra: &extra,
    };
    request(provider.wire, &ask)
}

/// Puts members into an object, into its objects member by member.
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
