//! Differences that break nothing by themselves: ids, finish reasons, optional arguments, times.

use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::Severity;

use super::describe::format_histogram;
use crate::argument_shape::{ArgumentShape, PathShape};
use crate::change::{ChangeParts, TrialChange};
use crate::member_declaration::MemberDeclaration;
use crate::rate::{Rate, float};
use crate::snapshot::{Histogram, Percentiles, Snapshot, TokenSum};
use crate::statistics::{fisher_drop, is_shifted};
use crate::trial_rule::TrialRule;

/// The minimum number of calls before disjoint types are more than chance.
const MIN_CALLS: u64 = 3;
/// The factor from which a longer time or a larger count is reported.
const NOTABLE_RATIO: f64 = 1.5;

/// Adds the minor differences.
pub(super) fn add_minor_changes(old: &Snapshot, new: &Snapshot, changes: &mut Vec<TrialChange>) {
    for (name, after) in &new.tools {
        let Some(before) = old.tools.get(name) else {
            continue;
        };
        // If one side never called a tool, there is nothing to compare.
        if before.calls == 0 || after.calls == 0 {
            continue;
        }
        let tool = Some(name.as_str());
        let ids = (&before.id_classes, &after.id_classes);
        changes.extend(shifted(tool, TrialRule::IdClass, "", ids, ID_NOTE));
        let arity = (words(&before.parallel_arity), words(&after.parallel_arity));
        changes.extend(shifted(
            tool,
            TrialRule::ParallelArity,
            "",
            (&arity.0, &arity.1),
            ARITY_NOTE,
        ));
        arguments(name, &before.arguments, &after.arguments, changes);
    }
    replies(old, new, changes);
    identity(old, new, changes);
    costs(old, new, changes);
}

const ID_NOTE: &str = "ids look different; another provider may refuse a history that has them";
const ARITY_NOTE: &str = "the tool is called another number of times in one reply";
const FINISH_NOTE: &str = "the model gives another reason to stop; callers may dispatch on it";

fn replies(old: &Snapshot, new: &Snapshot, changes: &mut Vec<TrialChange>) {
    let (before, after) = (&old.replies, &new.replies);
    let finish = (&before.finish, &after.finish);
    let mut told = shifted(
        None,
        TrialRule::FinishReason,
        "/replies/finish",
        finish,
        FINISH_NOTE,
    );
    if let Some(change) = &mut told
        && old.wire != new.wire
    {
        // Each wire API has its own words.
        change.class = Severity::Info.into();
    }
    changes.extend(told);
    let rates = [
        (
            TrialRule::FinishConsistency,
            before.finish_consistent,
            after.finish_consistent,
            Severity::Warning,
            "how often the reason to stop goes with the calls",
        ),
        (
            TrialRule::UniqueIds,
            before.unique_in_turn,
            after.unique_in_turn,
            Severity::Warning,
            "how often the ids of a reply are all different",
        ),
        (
            TrialRule::StreamEquivalence,
            before.stream_equivalence,
            after.stream_equivalence,
            Severity::Warning,
            "how often a streamed reply is like the whole one",
        ),
        (
            TrialRule::Text,
            before.text,
            after.text,
            Severity::Info,
            "how often the model says something beside its calls",
        ),
    ];
    let rules: BTreeSet<&String> = before.notes.keys().chain(after.notes.keys()).collect();
    for rule in rules {
        let rate = |it: &Snapshot| {
            let seen = it.replies.notes.get(rule).map(|it| it.replies);
            seen.unwrap_or(Rate::new(0, it.trials.measured))
        };
        let rates = (rate(old), rate(new));
        let pointer = format!("/replies/notes/{rule}");
        if is_notable(rates) && !changes.iter().any(|it| it.pointer.as_str() == pointer) {
            let said = after.notes.get(rule).or_else(|| before.notes.get(rule));
            let note = said.map_or("", |it| it.message.as_str());
            changes.push(rated(
                None,
                TrialRule::Note,
                &pointer,
                Severity::Info,
                rates,
                note,
            ));
        }
    }
    for (rule, before, after, severity, note) in rates {
        if is_shifted(before, after) {
            let better = after.share() > before.share() && rule != TrialRule::Text;
            let severity = if better { Severity::Info } else { severity };
            changes.push(rated(
                None,
                rule,
                "/replies",
                severity,
                (before, after),
                note,
            ));
        }
    }
}

/// The frequencies of classes, if they moved by more than chance.
fn shifted(
    tool: Option<&str>,
    rule: TrialRule,
    pointer: &str,
    (old, new): (&Histogram, &Histogram),
    note: &str,
) -> Option<TrialChange> {
    let total = |it: &Histogram| it.values().fold(0, |sum: u64, it| sum.saturating_add(*it));
    let rate =
        |it: &Histogram, word: &str| Rate::new(it.get(word).copied().unwrap_or(0), total(it));
    let words: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let moved = words
        .into_iter()
        .any(|word| is_shifted(rate(old, word), rate(new, word)));
    let parts = || ChangeParts {
        tool: tool.map(str::to_owned),
        rule,
        pointer: pointer.to_owned(),
        severity: Severity::Warning,
        before: format_histogram(old),
        after: format_histogram(new),
        message: note.to_owned(),
        rates: None,
    };
    moved.then(parts).map(TrialChange::from)
}

fn arguments(tool: &str, old: &ArgumentShape, new: &ArgumentShape, changes: &mut Vec<TrialChange>) {
    let paths: BTreeSet<&String> = old.paths.keys().chain(new.paths.keys()).collect();
    for path in paths {
        let (before, after) = (old.paths.get(path), new.paths.get(path));
        let declared = after
            .or(before)
            .map_or(MemberDeclaration::Open, |it| it.declared);
        let optional = matches!(
            declared,
            MemberDeclaration::Optional | MemberDeclaration::Open
        );
        let rates = (present(path, old), present(path, new));
        if optional && is_notable(rates) {
            let note = "how often an optional argument is there";
            changes.push(rated(
                Some(tool),
                TrialRule::Argument,
                path,
                Severity::Info,
                rates,
                note,
            ));
        }
        if let (Some(before), Some(after)) = (before, after) {
            changes.extend(types(tool, path, before, after));
        }
    }
}

/// How often a path is there, where it never is too.
fn present(path: &str, shape: &ArgumentShape) -> Rate {
    if let Some(known) = shape.paths.get(path) {
        return known.present;
    }
    let of = match path.rsplit_once('/') {
        Some(("", _)) | None => shape.calls,
        Some((parent, last)) => {
            let kind = if last == "*" { "array" } else { "object" };
            let parent = shape.paths.get(parent);
            let count = parent.and_then(|it| it.types.get(kind));
            count.copied().unwrap_or(0)
        }
    };
    Rate::new(0, of)
}

/// Whether a harmless share is worth reporting.
fn is_notable((old, new): (Rate, Rate)) -> bool {
    let turned = old.is_never() && new.is_always() || old.is_always() && new.is_never();
    let unlikely = || 2.0 * fisher_drop(old, new).min(fisher_drop(new, old)) <= 0.05;
    old.of > 0 && new.of > 0 && (turned || unlikely())
}

/// Disjoint types, although the schema allows both.
fn types(tool: &str, path: &str, old: &PathShape, new: &PathShape) -> Option<TrialChange> {
    let family = |kind: &String| {
        if kind == "integer" {
            "number".to_owned()
        } else {
            kind.clone()
        }
    };
    let families = |it: &PathShape| it.types.keys().map(family).collect::<BTreeSet<String>>();
    let (before, after) = (families(old), families(new));
    if before.is_empty() || after.is_empty() || !before.is_disjoint(&after) {
        return None;
    }
    let count = |it: &PathShape| {
        it.types
            .values()
            .fold(0, |sum: u64, it| sum.saturating_add(*it))
    };
    let enough = count(old) >= MIN_CALLS && count(new) >= MIN_CALLS;
    let parts = ChangeParts {
        tool: Some(tool.to_owned()),
        rule: TrialRule::ArgumentType,
        pointer: path.to_owned(),
        severity: if enough {
            Severity::Warning
        } else {
            Severity::Info
        },
        before: format_histogram(&old.types),
        after: format_histogram(&new.types),
        message: "the argument is of another type".to_owned(),
        rates: None,
    };
    Some(parts.into())
}

fn identity(old: &Snapshot, new: &Snapshot, changes: &mut Vec<TrialChange>) {
    let plain =
        |rule: TrialRule, severity, before: String, after: String, note: &str| -> TrialChange {
            let parts = ChangeParts {
                tool: None,
                pointer: format!("/{rule}"),
                rule,
                severity,
                before,
                after,
                message: note.to_owned(),
                rates: None,
            };
            parts.into()
        };
    if old.wire != new.wire {
        let note =
            "the endpoints use different wire APIs; the conventions of each API are not compared";
        changes.push(plain(
            TrialRule::Wire,
            Severity::Info,
            old.wire.to_string(),
            new.wire.to_string(),
            note,
        ));
    }
    let models = |it: &Snapshot| it.models.keys().cloned().collect::<BTreeSet<String>>();
    let same_name = old.label() == new.label();
    let (before, after) = (models(old), models(new));
    if same_name && !before.is_empty() && !after.is_empty() && before != after {
        let note = "the same model id was answered by another model";
        let (before, after) = (format_histogram(&old.models), format_histogram(&new.models));
        changes.push(plain(
            TrialRule::Models,
            Severity::Warning,
            before,
            after,
            note,
        ));
    }
}

fn costs(old: &Snapshot, new: &Snapshot, changes: &mut Vec<TrialChange>) {
    let mut put = |rule: TrialRule, pointer: &str, pair: (f64, f64), unit: &str| {
        let (before, after) = pair;
        let far = before.min(after) * NOTABLE_RATIO < before.max(after);
        if far {
            let parts = ChangeParts {
                tool: None,
                rule,
                pointer: pointer.to_owned(),
                severity: Severity::Info,
                before: format!("{before:.0}{unit}"),
                after: format!("{after:.0}{unit}"),
                message: "a cost, not a contract".to_owned(),
                rates: None,
            };
            changes.push(parts.into());
        }
    };
    let half = |it: &Percentiles| it.p50_ms;
    if let (Some(before), Some(after)) = (half(&old.latency.total), half(&new.latency.total)) {
        put(
            TrialRule::Latency,
            "/latency/total/p50_ms",
            (before, after),
            " ms",
        );
    }
    let mean = |it: TokenSum| (it.replies > 0).then(|| float(it.sum) / float(it.replies));
    for (pointer, before, after) in [
        ("/tokens/input", old.tokens.input, new.tokens.input),
        ("/tokens/output", old.tokens.output, new.tokens.output),
    ] {
        if let (Some(before), Some(after)) = (mean(before), mean(after)) {
            put(TrialRule::Tokens, pointer, (before, after), " a reply");
        }
    }
}

fn words(counts: &BTreeMap<u64, u64>) -> Histogram {
    counts
        .iter()
        .map(|(number, count)| (number.to_string(), *count))
        .collect()
}

fn rated(
    tool: Option<&str>,
    rule: TrialRule,
    pointer: &str,
    severity: Severity,
    (old, new): (Rate, Rate),
    note: &str,
) -> TrialChange {
    let parts = ChangeParts {
        tool: tool.map(str::to_owned),
        rule,
        pointer: pointer.to_owned(),
        severity,
        before: old.to_string(),
        after: new.to_string(),
        message: note.to_owned(),
        rates: Some((old, new)),
    };
    parts.into()
}
