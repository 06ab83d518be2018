use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolwarden_model::Fingerprint;
use toolwarden_model::reply::{Failure, Wire};

use super::arguments::ArgumentShape;
use super::mark::Mark;
use super::rate::Rate;
use super::suite::Expect;
use super::tooldrift::{SnapshotOne, ToolCallShape};
use super::words;

/// How often each word was seen.
pub type Histogram = BTreeMap<String, u64>;

/// What a run of a suite against one provider's model amounts to.
///
/// Every rate has its denominator. Of what the model sent, names and the words it stops with are kept,
/// never ids or arguments; a message of the validator may quote the start of a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    pub(super) schema: words::SchemaName,
    pub(super) schema_version: words::SchemaVersion,
    /// The provider.
    pub provider: String,
    /// The model that was asked for.
    pub model_id: String,
    /// How the endpoint speaks.
    #[serde(with = "words::text")]
    pub wire: Wire,
    /// When, in RFC 3339.
    pub at: Option<String>,
    /// The name of the suite.
    pub suite: String,
    /// The fingerprint of the suite.
    #[serde(with = "words::text")]
    pub suite_hash: Fingerprint,
    /// The fingerprint of each tool.
    #[serde(with = "words::texts")]
    pub tool_hashes: BTreeMap<String, Fingerprint>,
    /// The models that answered, by their own word.
    pub models: Histogram,
    /// How many trials there were, and what became of them.
    pub trials: TrialCounts,
    /// How each tool of the suite was called.
    pub tools: BTreeMap<String, ToolContract>,
    /// The tools that were called without being offered.
    pub undeclared: BTreeMap<String, UndeclaredTool>,
    /// What became of each case.
    pub cases: BTreeMap<String, CaseContract>,
    /// What holds of replies as wholes.
    pub replies: ReplyContract,
    /// How long replies took.
    pub latency: Latency,
    /// How many tokens they took.
    pub tokens: Tokens,
    /// The seven fields of tooldrift for each tool, from the first reply to each case.
    pub tooldrift: BTreeMap<String, ToolCallShape>,
}

impl Snapshot {
    /// Whether anything was measured. A snapshot of nothing is equal to none and meets no
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

    /// What tooldrift would have kept of the run, or nothing where nothing was measured.
    #[must_use]
    pub fn to_tooldrift(&self) -> Option<SnapshotOne> {
        self.is_measured().then(|| SnapshotOne {
            provider: self.provider.clone(),
            model_id: self.model_id.clone(),
            suite: self.suite.clone(),
            tools: self.tooldrift.clone(),
        })
    }

    /// Why trials were not measured, and how often.
    pub fn failures(&self) -> impl Iterator<Item = (Failure, u64)> + '_ {
        let failures = self.trials.failures.iter();
        failures.filter_map(|(word, count)| Some((Failure::from_word(word)?, *count)))
    }
}

/// How many trials there were, and what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialCounts {
    /// How many were planned.
    pub planned: u64,
    /// How many say something about the model.
    pub measured: u64,
    /// How many requests they took.
    pub attempts: u64,
    /// How many were measured with the first request.
    pub delivery_first: Rate,
    /// How many were measured at last.
    pub delivery_eventual: Rate,
    /// Why the others were not.
    pub failures: Histogram,
}

/// How a tool was called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolContract {
    /// In how many of the trials that ask for it or leave it open it was called.
    pub emitted: Rate,
    /// How many calls there were.
    pub calls: u64,
    /// The structure of the arguments.
    pub arguments: ArgumentShape,
    /// In which form arguments were sent, by call.
    pub encodings: Histogram,
    /// How many calls had arguments that fit the schema.
    pub schema_valid: Rate,
    /// What the schema says against the others.
    pub faults: Vec<FaultSeen>,
    /// How many calls lacked a required argument.
    pub missing_required: Rate,
    /// How many had an argument the schema does not name.
    pub extra_keys: Rate,
    /// How many had an argument of a wrong type.
    pub wrong_type: Rate,
    /// What ids look like, by call.
    pub id_classes: Histogram,
    /// How often it was called in replies that called it.
    pub parallel_arity: BTreeMap<u64, u64>,
    /// How the seven fields of tooldrift came out, by trial.
    pub variants: Vec<Variant>,
    /// How many trials had variants beyond those that are kept.
    pub variants_dropped: u64,
}

/// What a schema says against arguments, and in how many calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultSeen {
    /// The path in the arguments, with `*` for the items of an array.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// How many calls.
    pub calls: u64,
    /// One of its messages.
    pub message: String,
}

/// The seven fields of tooldrift, and in how many trials they were so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
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

/// What became of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseContract {
    /// Whether the model is to call a tool.
    #[serde(with = "words::expect")]
    pub expect: Expect,
    /// The tools it is to call.
    pub expected: Vec<String>,
    /// The tools it must not call.
    pub forbid: Vec<String>,
    /// How many trials were planned.
    pub planned: u64,
    /// How many were measured.
    pub measured: u64,
    /// What the trials showed, and how many showed just this.
    pub outcomes: Vec<Outcome>,
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
    /// The chance that `k` trials drawn from these all did what the case expects, for `k` from one.
    pub pass_hat: Vec<f64>,
}

impl CaseContract {
    /// Whether the case asks for exact arguments.
    pub(super) const fn exact_asked(&self) -> bool {
        self.exact.of > 0
    }

    /// Whether the case is against a call of a tool.
    pub(super) fn forbids(&self, tool: &str) -> bool {
        self.expect == Expect::NoCall || self.forbid.iter().any(|it| it == tool)
    }

    /// Whether the case says something about how often a tool is called.
    pub(super) fn asks_for(&self, tool: &str) -> bool {
        let is = |tools: &[String]| tools.iter().any(|it| it == tool);
        match self.expect {
            Expect::NoCall => false,
            Expect::Call | Expect::Either => {
                !is(&self.forbid) && (self.expected.is_empty() || is(&self.expected))
            }
        }
    }
}

/// What trials showed, and how many showed just this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// How many trials.
    pub trials: u64,
    /// What they showed, sorted.
    #[serde(with = "words::marks")]
    pub marks: Vec<Mark>,
}

/// What holds of replies as wholes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyContract {
    /// How many called a tool where the case asks for it.
    pub emit: Rate,
    /// How many called a tool where the case forbids it.
    pub false_emit: Rate,
    /// How many calls replies had.
    pub parallel_arity: BTreeMap<u64, u64>,
    /// How many had ids all different.
    pub unique_in_turn: Rate,
    /// How many ids of the whole run are different.
    pub unique_in_session: Rate,
    /// Why models stopped, in their words.
    pub finish: Histogram,
    /// What that means.
    pub finish_classes: Histogram,
    /// How many stopped for a reason that goes with what they called.
    pub finish_consistent: Rate,
    /// How many had markup come through as text.
    pub leaked: Rate,
    /// Whose markup and where.
    pub leaks: Vec<LeakSeen>,
    /// What was odd, by rule.
    pub notes: BTreeMap<String, NoteSeen>,
    /// How many said something to the user.
    pub text: Rate,
    /// How many pairs of a whole and a streamed reply have the same shape.
    pub stream_equivalence: Rate,
}

/// Markup that came through as text, and in how many replies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeakSeen {
    /// Whose markup.
    pub family: String,
    /// Where: `text`, `reasoning` or `arguments`.
    pub place: String,
    /// How many replies.
    pub replies: Rate,
    /// One of the sentinels.
    pub sentinel: String,
}

/// Something odd, and in how many replies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteSeen {
    /// How many replies.
    pub replies: Rate,
    /// Where it was once.
    pub pointer: String,
    /// What was said of it there.
    pub message: String,
}

/// How long replies took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// As wholes.
    pub total: Percentiles,
    /// To the first event.
    pub first_event: Percentiles,
}

/// Two places in sorted times, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Percentiles {
    /// How many times.
    pub n: u64,
    /// Half are at most this.
    pub p50_ms: Option<f64>,
    /// Of twenty, nineteen are at most this.
    pub p95_ms: Option<f64>,
}

/// How many tokens replies took, as far as the provider says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Of requests.
    pub input: TokenSum,
    /// Of replies, reasoning included.
    pub output: TokenSum,
    /// Of reasoning.
    pub reasoning: TokenSum,
    /// Of requests, taken from a cache.
    pub cached: TokenSum,
}

/// A sum of tokens, and how many replies told theirs.
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
