use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use toolwarden_canon::request::{Ask, RequestBody, request};
use toolwarden_drift::contract::Measured;
use toolwarden_model::json::Object;
use toolwarden_model::reply::{ArgumentsClass, Mode, NotMeasured};
use toolwarden_model::{Format, Tool};

use super::family::{Family, STAND_IN, plain};
use super::is_refusal;
use super::report::{FamilyOutcome, FamilyReport};
use crate::exchange::Caller;
use crate::observe::Observer;
use crate::run::{Asker, Budget, Planned, Progress, Settings, Target, redactor_of};

/// The most tokens of an answer: a call is small.
const MAX_TOKENS: u64 = 512;

/// What all questions to one provider share.
pub(super) struct Asking {
    target: Target,
    settings: Settings,
    caller: Result<Caller, NotMeasured>,
    budget: Arc<Budget>,
    progress: Arc<dyn Fn(Progress) + Send + Sync>,
    ends: Option<Instant>,
    /// Nobody stops it but by dropping it.
    stop: watch::Sender<bool>,
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl Asking {
    pub(super) fn new(
        target: Target,
        settings: &Settings,
        progress: Arc<dyn Fn(Progress) + Send + Sync>,
    ) -> Self {
        let redactor = redactor_of(std::slice::from_ref(&target));
        Self {
            caller: Caller::new(&target, redactor, settings.body_bytes),
            budget: Arc::new(Budget::new(settings.max_cost_tokens)),
            ends: settings.deadline.map(|it| Instant::now() + it),
            settings: Settings {
                keep_exchanges: true,
                ..settings.clone()
            },
            target,
            progress,
            stop: watch::Sender::new(false),
        }
    }

    /// What becomes of a plain schema, and the choice it was taken with.
    pub(super) async fn plain(&self) -> (&'static str, FamilyReport) {
        let plain = plain();
        // It is none of the families that are counted.
        let silent: Arc<dyn Fn(Progress) + Send + Sync> = Arc::new(|_| {});
        let forced = self.ask(&plain, "required", &silent).await;
        if forced.outcome != FamilyOutcome::Rejected {
            return ("required", forced);
        }
        ("auto", self.ask(&plain, "auto", &silent).await)
    }

    /// What becomes of a family.
    pub(super) async fn family(&self, family: &Family, tool_choice: &str) -> FamilyReport {
        self.ask(family, tool_choice, &self.progress).await
    }

    async fn ask(
        &self,
        family: &Family,
        tool_choice: &str,
        progress: &Arc<dyn Fn(Progress) + Send + Sync>,
    ) -> FamilyReport {
        let tool = tool_of(family);
        let planned = Planned {
            case_index: 0,
            case: family.id.to_owned(),
            mode: Mode::Nonstream,
            repetition: 0,
            request: Arc::new(self.asked(family, &tool, tool_choice)),
        };
        let named = Tool {
            name: family.name.to_owned(),
            ..tool
        };
        let asker = Asker {
            target: 0,
            caller: self.caller.clone(),
            wire: self.target.provider.wire,
            observer: Arc::new(Observer::with_formats(&[named])),
            redactor: redactor_of(std::slice::from_ref(&self.target)),
            budget: Arc::clone(&self.budget),
            progress: Arc::clone(progress),
            settings: self.settings.clone(),
            ends: self.ends,
            stop: self.stop.subscribe(),
        };
        let outcome = asker.ask(&planned).await;
        let status = outcome.exchanges.last().and_then(|it| it.status);
        let report = FamilyReport {
            status,
            ..FamilyReport::not_measured(family)
        };
        match outcome.measured {
            Ok(measured) => judged(report, family, &measured),
            Err(failure) => FamilyReport {
                outcome: if is_refusal(failure.failure, status) {
                    FamilyOutcome::Rejected
                } else {
                    FamilyOutcome::NotMeasured
                },
                message: Some(failure.detail),
                ..report
            },
        }
    }

    /// The request, with the name of the tool exactly as the family has it.
    fn asked(&self, family: &Family, tool: &Tool, tool_choice: &str) -> RequestBody {
        let provider = &self.target.provider;
        let messages = [json!({"role": "user", "content": family.ask})];
        let mut asked = request(
            provider.wire,
            &Ask {
                model: &provider.model_id,
                messages: &messages,
                tools: std::slice::from_ref(tool),
                tool_choice: Some(&json!(tool_choice)),
                mode: Mode::Nonstream,
                temperature: None,
                max_tokens: Some(MAX_TOKENS),
                extra: &provider.extra_body,
            },
        );
        rename(&mut asked.body, family.name);
        asked
    }
}

/// The tool of a family under a name that every wire takes. Whether a wire takes the real one is
/// the question, so nothing may rename it.
fn tool_of(family: &Family) -> Tool {
    let mut tool = Tool::new(Format::OpenaiChat);
    STAND_IN.clone_into(&mut tool.name);
    "Takes what the user names.".clone_into(&mut tool.description);
    tool.inputs = match &family.schema {
        Value::Object(members) => members.clone(),
        _ => Object::new(),
    };
    tool
}

fn rename(value: &mut Value, name: &str) {
    match value {
        Value::String(text) if text == STAND_IN => name.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|it| rename(it, name)),
        Value::Object(members) => members.values_mut().for_each(|it| rename(it, name)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a call of the tool went against the schema.
fn judged(report: FamilyReport, family: &Family, measured: &Measured) -> FamilyReport {
    let calls = || measured.calls.iter().filter(|it| it.name == family.name);
    let against = calls().find_map(|call| {
        if let Some(fault) = call.faults.first() {
            return Some(format!("{}: {}", fault.pointer, fault.message));
        }
        let is_object = matches!(
            call.class,
            ArgumentsClass::JsonObjectString | ArgumentsClass::Object
        );
        (!is_object).then(|| format!("the arguments are {}", call.class.as_str()))
    });
    FamilyReport {
        outcome: if against.is_some() {
            FamilyOutcome::Ignored
        } else {
            FamilyOutcome::Accepted
        },
        called: calls().next().is_some(),
        message: against,
        ..report
    }
}
