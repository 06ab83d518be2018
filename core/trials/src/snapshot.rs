use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolwarden_model::Fingerprint;
use toolwarden_model::reply::{TrialFailure, WireApi};

use super::argument_shape::ArgumentShape;
use super::rate::Rate;
use super::serde_words;
use super::suite::CallExpectation;
use super::tooldrift::{ToolCallShape, TooldriftSnapshot};
use super::trial_mark::TrialMark;

/// How often each word was seen.
pub type Histogram = BTreeMap<String, u64>;

/// The summary of a run of a suite against one provider's model.
///
/// Every rate has its denominator. Of the model's output, a snapshot keeps names and finish reasons,
/// never ids or arguments. A validator message may quote the start of a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    pub(super) schema: serde_words::SchemaName,
    pub(super) schema_version: serde_words::SchemaVersion,
    /// The provider.
    pub provider: String,
    /// The requested model.
    pub model_id: String,
    /// The wire API of the endpoint.
    #[serde(with = "serde_words::text")]
    pub wire: WireApi,
    /// The time, in RFC 3339.
    pub at: Option<String>,
    /// The name of the suite.
    pub suite: String,
    /// The fingerprint of the suite.
    #[serde(with = "serde_words::text")]
    pub suite_hash: Fingerprint,
    /// The fingerprint of each tool.
    #[serde(with = "serde_words::texts")]
    pub tool_hashes: BTreeMap<String, Fingerprint>,
    /// The models that answered, as they named themselves.
    pub models: Histogram,
    /// The number of trials and their outcomes.
    pub trials: TrialCounts,
    /// How each tool of the suite was called.
    pub tools: BTreeMap<String, ToolContract>,
    /// The tools that were called without being offered.
    pub undeclared: BTreeMap<String, UndeclaredTool>,
    /// The outcome of each case.
    pub cases: BTreeMap<String, CaseContract>,
    /// Properties of whole replies.
    pub replies: ReplyContract,
    /// How long replies took.
    pub latency: ReplyLatency,
    /// How many tokens they took.
    pub tokens: TokenTotals,
    /// The seven fields of tooldrift for each tool, from the first reply to each case.
    pub tooldrift: BTreeMap<String, ToolCallShape>,
}

impl Snapshot {
    /// Whether any trial was measured. A snapshot without measured trials equals no other and meets no
    /// expectation.
    #[must_use]
    pub const fn is_measured(&self) -> bool {
        self.trials.measured > 0
    }

    /// `provider/model_id`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}/{}", self.provider, self.model_id)
    }

    /// What tooldrift would have kept of the run; `None` if nothing was measured.
    #[must_use]
    pub fn to_tooldrift(&self) -> Option<TooldriftSnapshot> {
        self.is_measured().then(|| TooldriftSnapshot {
            provider: self.provider.clone(),
            model_id: self.model_id.clone(),
            suite: self.suite.clone(),
            tools: self.tooldrift.clone(),
        })
    }

    /// Whether the provider refused the tools in any trial.
    #[must_use]
    pub fn rejects_tools(&self) -> bool {
        self.failures()
            .any(|(it, _)| it == TrialFailure::SchemaRejected)
    }

    /// Why trials were not measured, and how often.
    pub fn failures(&self) -> impl Iterator<Item = (TrialFailure, u64)> + '_ {
        let failures = self.trials.failures.iter();
        failures.filter_map(|(word, count)| Some((TrialFailure::from_word(word)?, *count)))
    }
}

/// The number of trials and their outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialCounts {
    /// How many were planned.
    pub planned: u64,
    /// How many were measured.
    pub measured: u64,
    /// How many requests they took.
    pub attempts: u64,
    /// How many were measured with the first request.
    pub delivery_first: Rate,
    /// How many were measured in the end.
    pub delivery_eventual: Rate,
    /// Why the others were not measured.
    pub failures: Histogram,
}

/// How a tool was called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolContract {
    /// In how many of the trials that ask for it, or leave it open, it was called.
    pub emitted: Rate,
    /// How many calls there were.
    pub calls: u64,
    /// The structure of the arguments.
    pub arguments: ArgumentShape,
    /// The encoding of the arguments, by call.
    pub encodings: Histogram,
    /// How many calls had arguments that fit the schema.
    pub schema_valid: Rate,
    /// The schema violations of the other calls.
    pub faults: Vec<FaultCount>,
    /// How many calls lacked a required argument.
    pub missing_required: Rate,
    /// How many had an argument the schema does not name.
    pub extra_keys: Rate,
    /// How many had an argument of a wrong type.
    pub wrong_type: Rate,
    /// The classes of ids, by call.
    pub id_classes: Histogram,
    /// How often it was called in replies that called it.
    pub parallel_arity: BTreeMap<u64, u64>,
    /// The observed values of the seven tooldrift fields, by trial.
    pub variants: Vec<ShapeVariant>,
    /// How many trials had variants beyond the kept ones.
    pub variants_dropped: u64,
}

/// A schema violation in arguments, and its number of calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultCount {
    /// The path in the arguments, with `*` for the items of an array.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// How many calls.
    pub calls: u64,
    /// One of the validator's messages.
    pub message: String,
}

/// The seven fields of tooldrift, and the number of trials with these values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapeVariant {
    /// How many trials.
    pub trials: u64,
    /// The fields.
    pub shape: ToolCallShape,
}

/// A tool that was called without being offered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndeclaredTool {
    /// How many calls there were.
    pub calls: u64,
    /// In how many trials.
    pub trials: Rate,
}

/// The outcome of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseContract {
    /// Whether the model must call a tool.
    #[serde(with = "serde_words::expect")]
    pub expect: CallExpectation,
    /// The tools it must call.
    pub expected: Vec<String>,
    /// The tools it must not call.
    pub forbid: Vec<String>,
    /// How many trials were planned.
    pub planned: u64,
    /// How many were measured.
    pub measured: u64,
    /// The marks of the trials, and the number of trials with exactly these marks.
    pub outcomes: Vec<MarkCount>,
    /// How many did what the case expects.
    pub met: Rate,
    /// How many had the exact arguments, if the case asks for any.
    pub exact: Rate,
    /// How many of the expected calls were made.
    pub recall: Rate,
    /// How many had the most frequent shape.
    pub modal_shape: Rate,
    /// How many had the most frequent arguments.
    pub modal_arguments: Rate,
    /// The probability that `k` trials drawn from these all met the expectation, for `k` from one.
    pub pass_hat: Vec<f64>,
}

impl CaseContract {
    /// Whether the case asks for exact arguments.
    pub(super) const fn expects_exact_arguments(&self) -> bool {
        self.exact.of > 0
    }

    /// Whether the case forbids a call of a tool.
    pub(super) fn forbids(&self, tool: &str) -> bool {
        self.expect == CallExpectation::NoCall || self.forbid.iter().any(|it| it == tool)
    }

    /// Whether the case counts for how often a tool is called.
    pub(super) fn constrains_tool(&self, tool: &str) -> bool {
        let is = |tools: &[String]| tools.iter().any(|it| it == tool);
        match self.expect {
            CallExpectation::NoCall => false,
            CallExpectation::Call | CallExpectation::Either => {
                !is(&self.forbid) && (self.expected.is_empty() || is(&self.expected))
            }
        }
    }
}

/// The marks of trials, and the number of trials with exactly these marks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarkCount {
    /// How many trials.
    pub trials: u64,
    /// The marks, sorted.
    #[serde(with = "serde_words::marks")]
    pub marks: Vec<TrialMark>,
}

/// Properties of whole replies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyContract {
    /// How many called a tool where the case asks for it.
    pub emit: Rate,
    /// How many called a tool where the case forbids it.
    pub false_emit: Rate,
    /// How many calls replies had.
    pub parallel_arity: BTreeMap<u64, u64>,
    /// How many had only distinct ids.
    pub unique_in_turn: Rate,
    /// How many ids of the whole run are distinct.
    pub unique_in_session: Rate,
    /// The finish reasons, in the provider's words.
    pub finish: Histogram,
    /// The normalized finish reasons.
    pub finish_classes: Histogram,
    /// How many had a finish reason that matches their calls.
    pub finish_consistent: Rate,
    /// How many leaked markup into text.
    pub leaked: Rate,
    /// The family and place of the markup.
    pub leaks: Vec<LeakCount>,
    /// Irregularities, by rule.
    pub notes: BTreeMap<String, NoteCount>,
    /// How many contained text for the user.
    pub text: Rate,
    /// How many pairs of a whole and a streamed reply have the same shape.
    pub stream_equivalence: Rate,
}

/// Markup that leaked into text, and its number of replies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeakCount {
    /// The family of the markup.
    pub family: String,
    /// Where: `text`, `reasoning` or `arguments`.
    pub place: String,
    /// How many replies.
    pub replies: Rate,
    /// One of the sentinels.
    pub sentinel: String,
}

/// An irregularity, and its number of replies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteCount {
    /// How many replies.
    pub replies: Rate,
    /// The place of one occurrence.
    pub pointer: String,
    /// The message for that occurrence.
    pub message: String,
}

/// How long replies took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyLatency {
    /// Whole replies.
    pub total: Percentiles,
    /// The first event.
    pub first_event: Percentiles,
}

/// Two percentiles of times, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Percentiles {
    /// The number of times measured.
    pub n: u64,
    /// The median.
    pub p50_ms: Option<f64>,
    /// The 95th percentile.
    pub p95_ms: Option<f64>,
}

/// How many tokens replies took, as far as the provider reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenTotals {
    /// Of requests.
    pub input: TokenSum,
    /// Of replies, reasoning included.
    pub output: TokenSum,
    /// Of reasoning.
    pub reasoning: TokenSum,
    /// Of requests, taken from a cache.
    pub cached: TokenSum,
}

/// A sum of tokens, and the number of replies that reported theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenSum {
    /// How many replies.
    pub replies: u64,
    /// How many tokens.
    pub sum: u64,
}

impl TokenSum {
    pub(super) const fn count(&mut self, tokens: Option<u64>) {
        if let Some(tokens) = tokens {
            self.replies += 1;
            self.sum = self.sum.saturating_add(tokens);
        }
    }
}
