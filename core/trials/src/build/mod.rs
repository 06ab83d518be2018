//! Builds a snapshot from trials.

mod case;
mod reply;
mod signature;
mod tool;
mod undeclared;

use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::reply::WireApi;

use self::case::CaseBuilder;
use self::reply::ReplyStatsBuilder;
use self::signature::ReplySignature;
use self::tool::ToolBuilder;
use self::undeclared::UndeclaredToolsBuilder;
use super::rate::round_share;
use super::serde_words::{SchemaName, SchemaVersion};
use super::snapshot::{Histogram, Percentiles, ReplyLatency, Snapshot, TokenTotals, TrialCounts};
use super::suite::{SuiteCase, TrialSuite};
use super::tooldrift;
use super::trial::{MeasuredReply, Trial, TrialOrigin};
use super::trial_order::order_trials;

/// The maximum number of distinct provider words that are kept; further words are counted together.
pub(super) const MAX_WORDS: usize = 200;
/// The maximum length of provider or validator text that is kept.
const MAX_TEXT: usize = 200;
/// The maximum number of marks of one kind that are kept per trial.
const MAX_MARKS_PER_KIND: usize = 16;
/// The word that stands for all words beyond [`MAX_WORDS`].
const OTHERS: &str = "(others)";

/// Builds a snapshot from the trials of a suite. The result does not depend on their order.
#[must_use]
pub fn build_snapshot(origin: TrialOrigin, suite: &TrialSuite, trials: &[Trial]) -> Snapshot {
    let trials = order_trials(suite, trials);
    let mut build = SnapshotBuilder::new(suite, origin.wire);
    for trial in &trials {
        build.observe(trial);
    }
    let times = |of: fn(&Trial) -> Option<f64>| {
        let measured = trials.iter().filter(|trial| trial.outcome.is_ok());
        percentiles(measured.filter_map(|trial| of(trial)).collect())
    };
    let latency = ReplyLatency {
        total: times(|trial| trial.latency_ms),
        first_event: times(|trial| trial.first_event_ms),
    };
    let measured = build.counts.measured;
    let tools = build.tools.into_iter();
    let cases = build.cases.into_iter();
    let hashes = suite.tools.iter();
    Snapshot {
        schema: SchemaName,
        schema_version: SchemaVersion,
        provider: origin.provider,
        model_id: origin.model_id,
        wire: origin.wire,
        at: origin.at,
        suite: suite.name.clone(),
        suite_hash: suite.hash,
        tool_hashes: hashes
            .map(|(name, tool)| (name.clone(), tool.hash))
            .collect(),
        models: build.models,
        trials: build.counts,
        tools: tools
            .map(|(name, it)| (name.to_owned(), it.finish()))
            .collect(),
        undeclared: build.undeclared.finish(measured),
        cases: cases.map(|(name, it)| (name, it.finish())).collect(),
        replies: build.replies.finish(measured),
        latency,
        tokens: build.tokens,
        tooldrift: bounded_shapes(suite, &trials),
    }
}

struct SnapshotBuilder<'s> {
    suite: &'s TrialSuite,
    counts: TrialCounts,
    models: Histogram,
    tools: BTreeMap<&'s str, ToolBuilder<'s>>,
    undeclared: UndeclaredToolsBuilder,
    cases: BTreeMap<String, CaseBuilder>,
    replies: ReplyStatsBuilder,
    tokens: TokenTotals,
}

impl<'s> SnapshotBuilder<'s> {
    fn new(suite: &'s TrialSuite, wire: WireApi) -> Self {
        let tools = suite.tools.iter();
        let cases = suite.cases.iter();
        Self {
            suite,
            counts: TrialCounts::default(),
            models: Histogram::new(),
            tools: tools
                .map(|(name, it)| (name.as_str(), ToolBuilder::new(name, &it.schema)))
                .collect(),
            undeclared: UndeclaredToolsBuilder::default(),
            cases: cases
                .map(|it| (it.name.clone(), CaseBuilder::new(it.clone())))
                .collect(),
            replies: ReplyStatsBuilder::new(wire),
            tokens: TokenTotals::default(),
        }
    }

    fn observe(&mut self, trial: &Trial) {
        let first = trial.outcome.is_ok() && trial.attempts <= 1;
        self.counts.planned += 1;
        self.counts.attempts += u64::from(trial.attempts);
        self.counts.delivery_first.count(first);
        self.counts.delivery_eventual.count(trial.outcome.is_ok());
        let case = self.cases.entry(trial.case.clone()).or_insert_with(|| {
            CaseBuilder::new(SuiteCase {
                name: trial.case.clone(),
                ..SuiteCase::default()
            })
        });
        case.plan();
        match &trial.outcome {
            Ok(measured) => self.measure(trial, measured),
            Err(why) => bump(&mut self.counts.failures, why.failure.as_str()),
        }
    }

    fn measure(&mut self, trial: &Trial, measured: &MeasuredReply) {
        self.counts.measured += 1;
        if let Some(model) = &measured.model {
            bump(&mut self.models, &shorten(model));
        }
        self.tokens.input.count(measured.usage.input);
        self.tokens.output.count(measured.usage.output);
        self.tokens.reasoning.count(measured.usage.reasoning);
        self.tokens.cached.count(measured.usage.cached);
        let Some(case) = self.cases.get_mut(&trial.case) else {
            return;
        };
        let mut marks = Vec::new();
        for tool in self.tools.values_mut() {
            marks.extend(tool.observe(measured, &case.contract));
        }
        let declared = |name: &str| self.suite.tools.contains_key(name);
        marks.extend(self.undeclared.observe(measured, declared));
        let signature = ReplySignature::of(measured);
        marks.extend(
            self.replies
                .observe(trial, measured, &case.contract, &signature),
        );
        case.observe(measured, marks, signature);
    }
}

fn bounded_shapes(
    suite: &TrialSuite,
    trials: &[&Trial],
) -> BTreeMap<String, tooldrift::ToolCallShape> {
    let mut shapes = tooldrift::shapes(suite, &tooldrift::first_replies(trials));
    let mut room = MAX_WORDS;
    shapes.retain(|name, _| {
        if suite.tools.contains_key(name) {
            return true;
        }
        let fits = room > 0;
        room = room.saturating_sub(1);
        fits
    });
    shapes
}

/// Counts a word, or counts it as "other" if there are too many words.
fn bump(histogram: &mut Histogram, word: &str) {
    let room = histogram.len() < MAX_WORDS || histogram.contains_key(word);
    let word = if room { word } else { OTHERS };
    match histogram.get_mut(word) {
        Some(count) => *count += 1,
        None => {
            histogram.insert(word.to_owned(), 1);
        }
    }
}

/// Provider text, shortened for storage.
fn shorten(text: &str) -> String {
    if text.chars().nth(MAX_TEXT).is_none() {
        return text.to_owned();
    }
    text.chars().take(MAX_TEXT).chain(['…']).collect()
}

/// The first marks of one kind of a trial, so that no trial takes much space.
fn first_of_kind<T: Ord>(all: BTreeSet<T>) -> impl Iterator<Item = T> {
    all.into_iter().take(MAX_MARKS_PER_KIND)
}

/// The smaller of two texts, so that the kept text does not depend on the order.
fn keep_smallest(kept: &mut String, text: &str) {
    let text = shorten(text);
    if kept.is_empty() || text < *kept {
        *kept = text;
    }
}

/// Percentiles by nearest rank.
fn percentiles(mut times: Vec<f64>) -> Percentiles {
    times.retain(|time| time.is_finite());
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let rank = (times.len() * percent).div_ceil(100);
        times.get(rank.checked_sub(1)?).copied().map(round_share)
    };
    Percentiles {
        n: u64::try_from(times.len()).unwrap_or(u64::MAX),
        p50_ms: at(50),
        p95_ms: at(95),
    }
}
