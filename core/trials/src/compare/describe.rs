//! Turns the compared shares into changes, place by place.

use toolwarden_model::{Severity, Verdict};

use super::MetricComparison;
use super::metric::{Encodings, Metric};
use crate::change::{ChangeParts, TrialChange};
use crate::defects::{
    Defect, defect_of_mark, extra_key_defects, leak_defects, schema_defects,
    undeclared_tool_defects,
};
use crate::rate::Rate;
use crate::snapshot::{Histogram, Snapshot, ToolContract};
use crate::statistics::is_shifted;
use crate::trial_rule::TrialRule;

/// The differences that the shares show.
pub(super) fn changes(
    old: &Snapshot,
    new: &Snapshot,
    metrics: &[MetricComparison],
) -> Vec<TrialChange> {
    let mut changes: Vec<TrialChange> = Vec::new();
    let by_itself = |it: &&MetricComparison| matches!(it.metric, Metric::Without { .. });
    let kinds = metrics.iter().filter(|it| !by_itself(it));
    for compared in metrics.iter().filter(by_itself).chain(kinds) {
        let Some((severity, why)) = severity_of(compared) else {
            continue;
        };
        for change in describe(old, new, compared, severity, &why) {
            // Every class of arguments is compared on its own; the most severe is reported for the
            // tool. The report of a single fault takes precedence over that of its kind.
            let graver = |told: &TrialChange| {
                let breaking = change.severity() == Severity::Breaking;
                change.severity() > told.severity()
                    && (breaking || told.evidence.rule == TrialRule::ArgumentsEncoding)
            };
            match changes.iter_mut().find(|it| is_same(it, &change)) {
                Some(told) if graver(told) => *told = change,
                Some(_) => {}
                None => changes.push(change),
            }
        }
    }
    changes
}

/// Whether two changes are about the same thing; faults at one place differ by their keyword.
fn is_same(one: &TrialChange, other: &TrialChange) -> bool {
    // The id holds the keyword of a violation.
    one.id == other.id
}

/// The severity of a share's difference and the reason; `None` if there is nothing to report.
fn severity_of(compared: &MetricComparison) -> Option<(Severity, String)> {
    let points = |share: f64| format!("{:.0}", share * 100.0);
    // One trial is a reply, not a rate.
    let between = match compared.old.of.min(compared.new.of) {
        0 | 1 => "one trial is not a rate".to_owned(),
        _ => format!(
            "{} points, between {} and {}",
            points(compared.difference),
            points(compared.interval.lower),
            points(compared.interval.upper)
        ),
    };
    let by_itself = matches!(compared.metric, Metric::Without { .. });
    if by_itself && compared.new.is_always() {
        return None;
    }
    match compared.verdict {
        Verdict::Drift if compared.structural => {
            Some((Severity::Breaking, "never before, always now".to_owned()))
        }
        Verdict::Drift
            if compared.metric.is_zero_tolerance() && !compared.first_seen_in.is_empty() =>
        {
            let cases = cases(&compared.first_seen_in);
            Some((
                Severity::Breaking,
                format!("never before, now in {cases}; one is too many"),
            ))
        }
        Verdict::Drift => Some((
            Severity::Breaking,
            format!("more than chance: {between}, p = {:.4}", compared.p),
        )),
        Verdict::NotMeasured | Verdict::Pass
            if compared.metric.is_zero_tolerance() && compared.new.hits < compared.new.of =>
        {
            let why = match compared.verdict {
                _ if compared.old.is_never() && compared.new.is_never() => {
                    "always so on both sides".to_owned()
                }
                Verdict::NotMeasured => {
                    format!("so on both sides; too few trials to tell an increase: {between}")
                }
                _ => "so on both sides, and not more often than before".to_owned(),
            };
            Some((Severity::Warning, why))
        }
        Verdict::NotMeasured if !compared.first_seen_in.is_empty() => {
            let cases = cases(&compared.first_seen_in);
            let why = format!("never before, now in {cases}; too few trials to tell: {between}");
            Some((Severity::Warning, why))
        }
        Verdict::Pass if !compared.first_seen_in.is_empty() => {
            let cases = cases(&compared.first_seen_in);
            let why = format!("never before, now in {cases}; within the allowed drop: {between}");
            Some((Severity::Warning, why))
        }
        Verdict::NotMeasured | Verdict::Pass
            if matches!(
                compared.metric,
                Metric::CaseExpectation { .. } | Metric::Emitted { .. }
            ) && compared.old.is_always()
                && compared.new.is_never() =>
        {
            let why = format!("always before, never now; too few trials to tell: {between}");
            Some((Severity::Warning, why))
        }
        Verdict::NotMeasured if compared.metric.is_needed() && compared.difference < 0.0 => {
            Some((Severity::Info, format!("too few trials to tell: {between}")))
        }
        Verdict::NotMeasured => None,
        Verdict::Pass if compared.metric.is_structural() && compared.new.hits < compared.new.of => {
            if compared.old.is_never() && compared.new.is_never() {
                return Some((Severity::Warning, "always so on both sides".to_owned()));
            }
            Some((Severity::Info, "so on both sides".to_owned()))
        }
        Verdict::Pass => is_shifted(compared.old, compared.new)
            .then(|| (Severity::Info, format!("within what is allowed: {between}"))),
    }
}

fn cases(names: &[String]) -> String {
    match names {
        [] => "no case".to_owned(),
        [name] => format!("the case `{name}`"),
        [name, ..] => format!("{} cases, one of them `{name}`", names.len()),
    }
}

fn describe(
    old: &Snapshot,
    new: &Snapshot,
    compared: &MetricComparison,
    severity: Severity,
    why: &str,
) -> Vec<TrialChange> {
    let parts = |tool: Option<&str>, rule: TrialRule, pointer: String, note: &str| ChangeParts {
        tool: tool.map(str::to_owned),
        rule,
        pointer,
        severity,
        before: compared.old.to_string(),
        after: compared.new.to_string(),
        message: format!("{note} ({why})"),
        rates: Some((compared.old, compared.new)),
    };
    let plain = |tool: Option<&str>, rule: TrialRule, pointer: String, note: &str| {
        TrialChange::from(parts(tool, rule, pointer, note))
    };
    // For a side that never called a tool, the denominator is the number of trials.
    let could = |it: &ToolContract| match it.calls {
        0 => old.trials.measured,
        calls => calls,
    };
    let sides = |tool: &str| Some((old.tools.get(tool)?, new.tools.get(tool)?));
    match &compared.metric {
        Metric::Emitted { tool } => {
            let note = "how often the tool is called where it is asked for";
            vec![plain(Some(tool), TrialRule::Emitted, String::new(), note)]
        }
        Metric::SchemaValid { tool } => {
            let found = sides(tool).map(|(old, new)| {
                let before = schema_defects(tool, old);
                describe_increase(
                    (&before, could(old)),
                    schema_defects(tool, new),
                    severity,
                    why,
                )
            });
            let found = found.unwrap_or_default();
            if found.is_empty() {
                let note = "how often all arguments fit the schema";
                return vec![plain(
                    Some(tool),
                    TrialRule::SchemaValid,
                    String::new(),
                    note,
                )];
            }
            found
        }
        Metric::NoExtraKeys { tool } => {
            let found = sides(tool).map(|(old, new)| {
                let before = extra_key_defects(tool, old);
                describe_increase(
                    (&before, could(old)),
                    extra_key_defects(tool, new),
                    severity,
                    why,
                )
            });
            found.unwrap_or_default()
        }
        Metric::NotEncodedAs { tool, class } => {
            let note = format!("how arguments are sent changed: {}", class.as_str());
            let mut change = parts(
                Some(tool),
                TrialRule::ArgumentsEncoding,
                String::new(),
                &note,
            );
            if let Some((before, after)) = sides(tool) {
                let swapped = Encodings::of(old, new).is_swapped();
                change.before = encodings(before, swapped.then_some(old));
                change.after = encodings(after, swapped.then_some(new));
            }
            change.rates = Some((compared.old.complement(), compared.new.complement()));
            vec![change.into()]
        }
        Metric::DeclaredOnly => {
            let before = undeclared_tool_defects(old);
            describe_increase(
                (&before, old.trials.measured),
                undeclared_tool_defects(new),
                severity,
                why,
            )
        }
        Metric::NoLeak => {
            let before = leak_defects(old);
            describe_increase(
                (&before, old.trials.measured),
                leak_defects(new),
                severity,
                why,
            )
        }
        Metric::Expectation => {
            let note = "how often the model does what the case expects";
            let pointer = match new.cases.len() {
                1 => new
                    .cases
                    .keys()
                    .map(|name| format!("/cases/{name}"))
                    .collect(),
                _ => "/cases".to_owned(),
            };
            vec![plain(None, TrialRule::Expectation, pointer, note)]
        }
        Metric::CaseExpectation { case } => {
            let note = format!("how often the model does what the case `{case}` expects");
            vec![plain(
                None,
                TrialRule::Expectation,
                format!("/cases/{case}"),
                &note,
            )]
        }
        Metric::ExactArguments => {
            let note = "how often the arguments are those the case asks for";
            vec![plain(
                None,
                TrialRule::ExactArguments,
                "/cases".to_owned(),
                note,
            )]
        }
        Metric::Without { mark } => {
            let found = defect_of_mark(mark, new).into_iter().next();
            let wrong = found.unwrap_or_else(|| Defect {
                tool: compared.metric.tool().map(str::to_owned),
                rule: TrialRule::Wrong,
                pointer: String::new(),
                what: mark.to_string(),
                rate: Rate::default(),
            });
            let mut change = parts(
                wrong.tool.as_deref(),
                wrong.rule,
                wrong.pointer,
                &wrong.what,
            );
            let rates = (compared.old.complement(), compared.new.complement());
            change.before = rates.0.to_string();
            change.after = rates.1.to_string();
            change.rates = Some(rates);
            vec![change.into()]
        }
    }
}

/// The faults of the new side; for a breaking change, only those that became more frequent.
///
/// The old side keeps only the faults that it showed, so for any other fault its rate is 0 of the
/// possible count.
fn describe_increase(
    (old, of): (&[Defect], u64),
    new: Vec<Defect>,
    severity: Severity,
    why: &str,
) -> Vec<TrialChange> {
    let before = |wrong: &Defect| {
        let known = old.iter().find(|it| it.is_same_defect(wrong));
        known.map_or(Rate::new(0, of), |it| it.rate)
    };
    let changes = new.into_iter().filter_map(|wrong| {
        let past = before(&wrong);
        let more = wrong.rate.share() > past.share();
        if severity == Severity::Breaking && !more {
            return None;
        }
        let parts = ChangeParts {
            tool: wrong.tool,
            rule: wrong.rule,
            pointer: wrong.pointer,
            severity,
            before: past.to_string(),
            after: wrong.rate.to_string(),
            message: format!("{} ({why})", wrong.what),
            rates: Some((past, wrong.rate)),
        };
        Some(parts.into())
    });
    changes.collect()
}

fn encodings(tool: &ToolContract, wire: Option<&Snapshot>) -> String {
    let words = format_histogram(&tool.encodings);
    wire.map_or_else(|| words.clone(), |it| format!("{words} on {}", it.wire))
}

/// Formats a histogram for a reader: only the word if there is just one.
pub(super) fn format_histogram(histogram: &Histogram) -> String {
    if let Some((word, _)) = histogram.first_key_value()
        && histogram.len() == 1
    {
        return word.clone();
    }
    if histogram.is_empty() {
        return "—".to_owned();
    }
    let words = histogram
        .iter()
        .map(|(word, count)| format!("{word} ×{count}"));
    words.collect::<Vec<_>>().join(", ")
}
