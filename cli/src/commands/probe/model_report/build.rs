//! Decides about each model with the engine of `probe run`.

use std::collections::BTreeSet;

use toolwarden_model::{Severity, Verdict};
use toolwarden_probe::PriceTable;
use toolwarden_probe::capture::Capture;
use toolwarden_trials::{FaultLimits, PinnedContract, Snapshot, TokenSum};

use super::evidence::EvidenceFinder;
use super::page::{CaseRow, Finding, ModelColumn, ModelDecision, ModelReport, ToolCell, count};
use crate::args::JudgeArgs;
use crate::commands::probe::comparison::{
    ComparisonRules, ProbeComparison, compare_trials, compare_with_pins,
};
use crate::commands::probe::snapshot::all_measured;
use crate::error::ProbeError;

/// The most findings of one model on the page; the rest are counted.
const MAX_FINDINGS: usize = 100;

/// The fewest trials of a case that can make a model a go. From here on the error rate of the comparison
/// holds.
const MIN_TRIALS: u64 = 3;

/// What a report is made from.
pub(super) struct ReportInput<'i> {
    pub(super) snapshots: &'i [Snapshot],
    pub(super) expected: Option<&'i PinnedContract>,
    pub(super) limits: &'i FaultLimits,
    pub(super) judge: &'i JudgeArgs,
    pub(super) captures: &'i [Capture],
    pub(super) prices: &'i PriceTable,
    pub(super) command: &'i str,
    pub(super) made_at: &'i str,
}

pub(super) fn build(input: &ReportInput<'_>) -> Result<ModelReport, ProbeError> {
    let tools: BTreeSet<&String> = input
        .snapshots
        .iter()
        .flat_map(|it| it.tool_hashes.keys().chain(it.undeclared.keys()))
        .collect();
    let tools: Vec<String> = tools.into_iter().cloned().collect();
    let mut models = Vec::new();
    for (at, taken) in input.snapshots.iter().enumerate() {
        let baseline = input.snapshots.first().filter(|_| at > 0);
        models.push(column(input, taken, baseline, &tools)?);
    }
    let suite = input.snapshots.first().map(|it| it.suite.clone());
    Ok(ModelReport {
        suite: suite.unwrap_or_default(),
        command: input.command.to_owned(),
        made_at: input.made_at.to_owned(),
        is_pinned: input.expected.is_some(),
        allowed_drop: input.judge.allowed_drop,
        tools,
        models,
        prices_as_of: input.prices.as_of.clone(),
        prices_source: input.prices.source.clone(),
    })
}

fn column(
    input: &ReportInput<'_>,
    taken: &Snapshot,
    baseline: Option<&Snapshot>,
    tools: &[String],
) -> Result<ModelColumn, ProbeError> {
    let judge = input.judge;
    let nothing = PinnedContract::default();
    let mut compared = vec![compare_with_pins(
        taken,
        (input.expected.unwrap_or(&nothing), input.limits),
        judge,
    )];
    if let Some(baseline) = baseline {
        compared.push(compare_trials(baseline, taken, judge)?);
    }
    // Without pins and without a baseline there is nothing that a pass could refer to.
    let best = if baseline.is_none() && input.expected.is_none() {
        ModelDecision::Baseline
    } else {
        ModelDecision::Go
    };
    let whole = all_measured(taken);
    let judgment = ModelJudgment {
        taken,
        compared: &compared,
        judge,
        best,
        whole,
    };
    let (decision, reason) = judgment.model();
    let price = input.prices.find(&taken.provider, &taken.model_id);
    let cost = price.and_then(|it| it.per_reply(&taken.tokens));
    let failures = taken.trials.failures.iter();
    let mut findings = findings(&compared, &EvidenceFinder::new(input.captures, taken));
    let more_findings = findings.len().saturating_sub(MAX_FINDINGS);
    findings.truncate(MAX_FINDINGS);
    Ok(ModelColumn {
        label: taken.label(),
        at: taken.at.clone(),
        wire: taken.wire.as_str(),
        answered_by: taken.models.keys().cloned().collect(),
        is_baseline: baseline.is_none() && input.snapshots.len() > 1,
        decision,
        reason,
        planned: taken.trials.planned,
        measured: taken.trials.measured,
        failures: failures
            .map(|(word, count)| (word.clone(), *count))
            .collect(),
        tools: tools.iter().map(|it| judgment.tool(it)).collect(),
        replies: judgment.replies(),
        cases: case_rows(taken),
        findings,
        more_findings,
        p50_ms: taken.latency.total.p50_ms,
        p95_ms: taken.latency.total.p95_ms,
        input_tokens: average(taken.tokens.input),
        output_tokens: average(taken.tokens.output),
        cost: cost.map(|it| (it * 1_000.0, input.prices.currency.clone())),
    })
}

/// A model and everything it is compared with.
struct ModelJudgment<'j> {
    taken: &'j Snapshot,
    compared: &'j [ProbeComparison],
    judge: &'j JudgeArgs,
    /// The decision if nothing speaks against the model.
    best: ModelDecision,
    /// Whether every trial was measured.
    whole: bool,
}

impl ModelJudgment<'_> {
    /// As `probe run` decides: what fails there is a no-go here, and what is inconclusive there is not
    /// known here.
    fn model(&self) -> (ModelDecision, String) {
        let fails = Some(self.judge.failing_severity());
        let breaking = self.count(None, self.judge.failing_severity());
        let open = self
            .compared
            .iter()
            .any(|it| it.verdict == Verdict::NotMeasured);
        let (measured, planned) = (self.taken.trials.measured, self.taken.trials.planned);
        if self.compared.iter().any(|it| it.max_severity() >= fails) {
            let differences = count(breaking, "difference");
            return (
                ModelDecision::NoGo,
                format!("{differences} would break callers"),
            );
        }
        // A verdict without a row still counts.
        if self.compared.iter().any(|it| it.verdict == Verdict::Drift) {
            return (
                ModelDecision::NoGo,
                "a rate dropped by more than chance".to_owned(),
            );
        }
        if !self.whole {
            let reason = format!("only {measured} of {planned} trials could be measured");
            return (ModelDecision::NotKnown, reason);
        }
        if open {
            let reason = "too few trials to tell a difference from chance";
            return (ModelDecision::NotKnown, reason.to_owned());
        }
        let fewest = self.taken.cases.values().map(|it| it.measured).min();
        if self.best == ModelDecision::Go && fewest.unwrap_or_default() < MIN_TRIALS {
            let reason = format!("fewer than {MIN_TRIALS} trials of a case; use --repeat");
            return (ModelDecision::NotKnown, reason);
        }
        let trials = count(measured, "trial");
        let reason = match self.count(None, Severity::Warning) {
            0 => format!("nothing breaks in {trials}"),
            many => format!("nothing breaks in {trials}; {}", count(many, "warning")),
        };
        (self.best, reason)
    }

    fn tool(&self, tool: &str) -> ToolCell {
        let found = self.taken.tools.get(tool);
        let (called, valid) = match (found, self.taken.undeclared.get(tool)) {
            (Some(found), _) => (found.emitted, found.schema_valid),
            (None, Some(undeclared)) => (undeclared.trials, Default::default()),
            (None, None) => Default::default(),
        };
        let breaking = self.count(Some(tool), self.judge.failing_severity());
        let warnings = self.count(Some(tool), Severity::Warning) - breaking;
        let is_known = found.is_some_and(|it| it.emitted.of > 0) && self.whole;
        let decision = if breaking > 0 {
            ModelDecision::NoGo
        } else if !is_known || self.is_open(Some(tool)) || self.replies() == ModelDecision::NoGo {
            // What breaks whole replies breaks the calls in them.
            ModelDecision::NotKnown
        } else if self.best == ModelDecision::Go && called.of < MIN_TRIALS {
            ModelDecision::NotKnown
        } else {
            self.best
        };
        ToolCell {
            decision,
            called,
            valid,
            warnings,
            breaking,
        }
    }

    /// What no tool alone answers for.
    fn replies(&self) -> ModelDecision {
        let fails = self.judge.failing_severity();
        let mut rows = self.compared.iter().flat_map(|it| &it.changes);
        if rows.any(|it| it.tool.is_none() && it.severity() >= fails) {
            ModelDecision::NoGo
        } else if !self.whole || self.is_open(None) {
            ModelDecision::NotKnown
        } else {
            self.best
        }
    }

    /// Whether the trials leave something open about a tool, or about replies.
    fn is_open(&self, tool: Option<&str>) -> bool {
        self.compared.iter().any(|compared| match &compared.rules {
            ComparisonRules::Trials(comparison) => {
                comparison
                    .metrics
                    .iter()
                    .any(|it| it.verdict == Verdict::NotMeasured && it.metric.tool() == tool)
                    || !comparison.unmeasured_cases.is_empty()
            }
            ComparisonRules::Tooldrift(_) | ComparisonRules::Pinned => {
                compared.verdict == Verdict::NotMeasured
            }
        })
    }

    /// The rows of at least this severity, of one tool or of all.
    fn count(&self, tool: Option<&str>, from: Severity) -> usize {
        let rows = self.compared.iter().flat_map(|it| &it.changes);
        let rows = rows.filter(|it| it.severity() >= from);
        rows.filter(|it| tool.is_none() || it.tool.as_deref() == tool)
            .count()
    }
}

fn case_rows(taken: &Snapshot) -> Vec<CaseRow> {
    let rows = taken.cases.iter().map(|(name, it)| CaseRow {
        name: name.clone(),
        met: it.met,
        planned: it.planned,
    });
    rows.collect()
}

fn findings(compared: &[ProbeComparison], evidence: &EvidenceFinder<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for comparison in compared {
        let rows = comparison.changes.iter();
        let grave = rows.filter(|it| it.severity() > Severity::Info);
        findings.extend(grave.map(|row| Finding {
            tool: row.tool.clone(),
            severity: row.severity(),
            field: row.evidence.rule.to_string(),
            pointer: row.pointer.as_str().to_owned(),
            before: row.before_text(),
            after: row.after_text(),
            note: row.message.clone(),
            against: match &comparison.rules {
                ComparisonRules::Pinned => "the suite and the contract".to_owned(),
                ComparisonRules::Trials(_) | ComparisonRules::Tooldrift(_) => {
                    comparison.old.clone()
                }
            },
            evidence: evidence.find(row),
        }));
    }
    findings.sort_by_key(|it| std::cmp::Reverse(it.severity));
    findings
}

fn average(tokens: TokenSum) -> Option<f64> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of tokens are far below 2^53, and are only shown"
    )]
    (tokens.replies > 0).then(|| tokens.sum as f64 / tokens.replies as f64)
}
