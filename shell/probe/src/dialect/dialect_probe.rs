use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use toolwarden_canon::request::{ModelRequest, RequestBody, request};
use toolwarden_model::json::Object;
use toolwarden_model::reply::{ArgumentsClass, NotMeasured, StreamMode};
use toolwarden_model::{Format, Tool};
use toolwarden_trials::MeasuredReply;

use super::family::{KeywordFamily, TEMPLATE_NAME, plain_family};
use super::is_refusal;
use super::report::{KeywordFamilyOutcome, KeywordFamilyReport};
use crate::exchange::ProviderClient;
use crate::probe_target::ProbeTarget;
use crate::reply_observer::ReplyObserver;
use crate::run::{PlannedTrial, RunProgress, RunSettings, TokenBudget, TrialRunner, redactor_of};

/// The maximum tokens of a reply: a call is small.
const MAX_TOKENS: u64 = 512;

/// State shared by all requests to one provider.
pub(super) struct DialectProbe {
    target: ProbeTarget,
    settings: RunSettings,
    client: Result<ProviderClient, NotMeasured>,
    budget: Arc<TokenBudget>,
    progress: Arc<dyn Fn(RunProgress) + Send + Sync>,
    deadline: Option<Instant>,
    /// Never set: only dropping the future stops it.
    stop: watch::Sender<bool>,
}

impl fmt::Debug for DialectProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl DialectProbe {
    pub(super) fn new(
        target: ProbeTarget,
        settings: &RunSettings,
        progress: Arc<dyn Fn(RunProgress) + Send + Sync>,
    ) -> Self {
        let redactor = redactor_of(std::slice::from_ref(&target));
        Self {
            client: ProviderClient::new(&target, redactor, settings.body_bytes),
            budget: Arc::new(TokenBudget::new(settings.max_cost_tokens)),
            deadline: settings.deadline.map(|it| Instant::now() + it),
            settings: RunSettings {
                keep_exchanges: true,
                ..settings.clone()
            },
            target,
            progress,
            stop: watch::Sender::new(false),
        }
    }

    /// Sends a plain schema; returns the `tool_choice` that worked and the report.
    pub(super) async fn probe_plain(&self) -> (&'static str, KeywordFamilyReport) {
        let plain = plain_family();
        // The plain schema is not counted as a family.
        let silent: Arc<dyn Fn(RunProgress) + Send + Sync> = Arc::new(|_| {});
        let forced = self.send(&plain, "required", &silent).await;
        if forced.outcome != KeywordFamilyOutcome::Rejected {
            return ("required", forced);
        }
        ("auto", self.send(&plain, "auto", &silent).await)
    }

    /// Sends the schema of a family and reports the outcome.
    pub(super) async fn probe_family(
        &self,
        family: &KeywordFamily,
        tool_choice: &str,
    ) -> KeywordFamilyReport {
        self.send(family, tool_choice, &self.progress).await
    }

    async fn send(
        &self,
        family: &KeywordFamily,
        tool_choice: &str,
        progress: &Arc<dyn Fn(RunProgress) + Send + Sync>,
    ) -> KeywordFamilyReport {
        let tool = template_tool(family);
        let planned = PlannedTrial {
            case_index: 0,
            case: family.id.to_owned(),
            mode: StreamMode::Nonstream,
            repetition: 0,
            request: Arc::new(self.request_body(family, &tool, tool_choice)),
            conversation: None,
        };
        let named = Tool {
            name: family.name.to_owned(),
            ..tool
        };
        let asker = TrialRunner {
            target: 0,
            client: self.client.clone(),
            wire: self.target.provider.wire,
            observer: Arc::new(ReplyObserver::with_formats(&[named])),
            redactor: redactor_of(std::slice::from_ref(&self.target)),
            budget: Arc::clone(&self.budget),
            progress: Arc::clone(progress),
            settings: self.settings.clone(),
            deadline: self.deadline,
            stop: self.stop.subscribe(),
        };
        let outcome = asker.run_trial(&planned).await;
        let status = outcome.exchanges.last().and_then(|it| it.status);
        let report = KeywordFamilyReport {
            status,
            ..KeywordFamilyReport::not_measured(family)
        };
        match outcome.measured {
            Ok(measured) => with_call_checked(report, family, &measured),
            Err(failure) => KeywordFamilyReport {
                outcome: if is_refusal(failure.failure, status) {
                    KeywordFamilyOutcome::Rejected
                } else {
                    KeywordFamilyOutcome::NotMeasured
                },
                message: Some(failure.detail),
                ..report
            },
        }
    }

    /// The request, with the exact tool name of the family.
    fn request_body(&self, family: &KeywordFamily, tool: &Tool, tool_choice: &str) -> RequestBody {
        let provider = &self.target.provider;
        let messages = [json!({"role": "user", "content": family.prompt})];
        let mut asked = request(
            provider.wire,
            &ModelRequest {
                model: &provider.model_id,
                messages: &messages,
                tools: std::slice::from_ref(tool),
                tool_choice: Some(&json!(tool_choice)),
                mode: StreamMode::Nonstream,
                temperature: None,
                max_tokens: Some(MAX_TOKENS),
                extra: &provider.extra_body,
            },
        );
        rename(&mut asked.body, family.name);
        asked
    }
}

/// The tool of a family under a name that every wire accepts. The test is whether the wire accepts
/// the real name, so the name must not be rewritten.
fn template_tool(family: &KeywordFamily) -> Tool {
    let mut tool = Tool::new(Format::OpenaiChat);
    TEMPLATE_NAME.clone_into(&mut tool.name);
    "Takes what the user names.".clone_into(&mut tool.description);
    tool.inputs = match &family.schema {
        Value::Object(members) => members.clone(),
        _ => Object::new(),
    };
    tool
}

fn rename(value: &mut Value, name: &str) {
    match value {
        Value::String(text) if text == TEMPLATE_NAME => name.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|it| rename(it, name)),
        Value::Object(members) => members.values_mut().for_each(|it| rename(it, name)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Checks whether a call of the tool violated the schema.
fn with_call_checked(
    report: KeywordFamilyReport,
    family: &KeywordFamily,
    measured: &MeasuredReply,
) -> KeywordFamilyReport {
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
    KeywordFamilyReport {
        outcome: if against.is_some() {
            KeywordFamilyOutcome::Ignored
        } else {
            KeywordFamilyOutcome::Accepted
        },
        called: calls().next().is_some(),
        message: against,
        ..report
    }
}
