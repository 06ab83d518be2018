mod printed_field;

use std::collections::BTreeMap;

use toolwarden_model::Severity;
use toolwarden_model::reply::ArgumentsClass;

use crate::change::{ChangeParts, TrialChange, sort};
use crate::rate::Rate;
use crate::snapshot::{Histogram, Snapshot, ToolContract};
use crate::tooldrift::ToolCallShape;
use crate::trial_rule::TrialRule;

/// The pinned fields by tool. Tools and fields that are not named are not compared.
pub type PinnedContract = BTreeMap<String, PinnedToolContract>;

/// The pinned fields of one tool: the seven fields of tooldrift, each optional, the class of ids and
/// two minimum shares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PinnedToolContract {
    /// Whether the model calls it.
    pub emitted: Option<bool>,
    /// The names of the arguments.
    pub arg_keys: Option<Vec<String>>,
    /// The type of each argument that is named here.
    pub arg_nesting: Option<BTreeMap<String, String>>,
    /// `json_string`, `object` or `absent`.
    pub arguments_encoding: Option<String>,
    /// How many times one reply calls it.
    pub parallel_arity: Option<u64>,
    /// `openai`, `custom` or `absent`.
    pub tool_call_id_format: Option<String>,
    /// The finish reason, in the provider's word.
    pub finish_reason: Option<String>,
    /// The class of ids.
    pub id_class: Option<String>,
    /// The minimum share of trials that call it.
    pub emit_rate: Option<f64>,
    /// The minimum share of calls that fit the schema.
    pub schema_valid_rate: Option<f64>,
}

impl PinnedToolContract {
    /// The fields that can be pinned.
    pub const FIELDS: [&'static str; 10] = [
        "emitted",
        "arg_keys",
        "arg_nesting",
        "arguments_encoding",
        "parallel_arity",
        "tool_call_id_format",
        "finish_reason",
        "id_class",
        "emit_rate",
        "schema_valid_rate",
    ];
}

/// Compares a snapshot with the pinned fields, one by one.
///
/// A field must match its pin in every trial that shows it; only `emit_rate` and `schema_valid_rate`
/// allow exceptions. `json_string` pins a string that holds a JSON object, and `object` pins an object.
/// A snapshot without measured trials has no differences: check [`Snapshot::is_measured`] first.
#[must_use]
pub fn compare_with_pinned(snapshot: &Snapshot, expected: &PinnedContract) -> Vec<TrialChange> {
    let mut changes = Vec::new();
    if !snapshot.is_measured() {
        return changes;
    }
    for (name, pinned) in expected {
        match snapshot.tools.get(name) {
            Some(tool) => compare_tool(name, pinned, tool, &mut changes),
            None => {
                let missing = ChangeParts {
                    tool: Some(name.clone()),
                    rule: TrialRule::Emitted,
                    pointer: String::new(),
                    severity: Severity::Breaking,
                    before: "pinned".to_owned(),
                    after: "absent".to_owned(),
                    message: "the suite has no such tool".to_owned(),
                    rates: None,
                };
                changes.push(missing.into());
            }
        }
    }
    sort(&mut changes);
    changes
}

fn compare_tool(
    name: &str,
    pinned: &PinnedToolContract,
    tool: &ToolContract,
    changes: &mut Vec<TrialChange>,
) {
    for field in printed_field::FIELDS {
        if let Some(wanted) = (field.pinned)(pinned) {
            let change = compare_field(
                name,
                field.rule.clone(),
                field.severity,
                &wanted,
                &field.observed,
                tool,
            );
            let is_encoding = field.rule == TrialRule::ArgumentsEncoding;
            let read = || is_encoding.then(|| compare_encoding(name, &wanted, tool))?;
            changes.extend(change.or_else(read));
        }
    }
    for (key, kind) in pinned.arg_nesting.iter().flatten() {
        let seen = |shape: &ToolCallShape| {
            let kind = shape.arg_nesting.get(key);
            kind.cloned().unwrap_or_else(|| "absent".to_owned())
        };
        changes.extend(compare_field(
            name,
            TrialRule::ArgNesting(key.clone()),
            Severity::Breaking,
            kind,
            &seen,
            tool,
        ));
    }
    if let Some(class) = &pinned.id_class {
        let change = compare_call_class(
            name,
            TrialRule::IdClass,
            Severity::Warning,
            class,
            class,
            &tool.id_classes,
        );
        changes.extend(change);
    }
    let least = [
        (TrialRule::EmitRate, pinned.emit_rate, tool.emitted),
        (
            TrialRule::SchemaValidRate,
            pinned.schema_valid_rate,
            tool.schema_valid,
        ),
    ];
    for (rule, wanted, rate) in least {
        if let Some(wanted) = wanted
            && rate.share().is_none_or(|share| share < wanted)
        {
            let before = format!("at least {wanted}");
            let after = match (rate.of, tool.calls) {
                (0, 0) => "not called".to_owned(),
                (0, _) => "not asked for".to_owned(),
                _ => rate.to_string(),
            };
            changes.push(pin_change(
                name,
                rule,
                Severity::Breaking,
                before,
                after,
                None,
            ));
        }
    }
}

/// Compares one field with every variant of the seven fields.
fn compare_field(
    name: &str,
    rule: TrialRule,
    severity: Severity,
    wanted: &str,
    seen: &dyn Fn(&ToolCallShape) -> String,
    tool: &ToolContract,
) -> Option<TrialChange> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for variant in &tool.variants {
        // A reply without a call says nothing of its arguments or id.
        if matches!(rule, TrialRule::Emitted | TrialRule::FinishReason) || variant.shape.emitted {
            *counts.entry(seen(&variant.shape)).or_default() += variant.trials;
        }
    }
    let of = counts
        .values()
        .fold(0, |sum: u64, it| sum.saturating_add(*it));
    if of == 0 {
        let absent = "not called".to_owned();
        return Some(pin_change(
            name,
            rule,
            severity,
            wanted.to_owned(),
            absent,
            None,
        ));
    }
    let as_pinned = Rate::new(counts.get(wanted).copied().unwrap_or(0), of);
    if as_pinned.is_always() {
        return None;
    }
    let value = most_frequent_other(&counts, wanted)?;
    let rates = Some((Rate::new(of, of), as_pinned));
    Some(pin_change(
        name,
        rule,
        severity,
        wanted.to_owned(),
        value,
        rates,
    ))
}

/// Compares the parsed class of the arguments with the pinned encoding.
fn compare_encoding(name: &str, wanted: &str, tool: &ToolContract) -> Option<TrialChange> {
    let class = match wanted {
        "json_string" => ArgumentsClass::JsonObjectString,
        "object" => ArgumentsClass::Object,
        _ => return None,
    };
    let rule = TrialRule::ArgumentsEncoding;
    let (severity, class) = (Severity::Breaking, class.as_str());
    compare_call_class(name, rule, severity, wanted, class, &tool.encodings)
}

/// Compares a class with every call.
fn compare_call_class(
    name: &str,
    rule: TrialRule,
    severity: Severity,
    wanted: &str,
    class: &str,
    seen: &Histogram,
) -> Option<TrialChange> {
    let of = seen
        .values()
        .fold(0, |sum: u64, it| sum.saturating_add(*it));
    let as_pinned = Rate::new(seen.get(class).copied().unwrap_or(0), of);
    if as_pinned.is_always() {
        return None;
    }
    let value = most_frequent_other(seen, class).unwrap_or_else(|| "not called".to_owned());
    let mut change = pin_change(name, rule, severity, wanted.to_owned(), value, None);
    if of > 0 {
        change.message = format!("matches its pin in {as_pinned} calls");
        change.evidence.rates = Some((Rate::new(of, of), as_pinned));
    }
    Some(change)
}

/// The most frequent value that does not match the pin.
fn most_frequent_other(counts: &Histogram, wanted: &str) -> Option<String> {
    let mut others = counts.iter().filter(|(value, _)| *value != wanted);
    let first = others.next()?;
    let most = others.fold(
        first,
        |one, other| if other.1 > one.1 { other } else { one },
    );
    Some(most.0.clone())
}

fn pin_change(
    tool: &str,
    rule: TrialRule,
    severity: Severity,
    before: String,
    after: String,
    rates: Option<(Rate, Rate)>,
) -> TrialChange {
    let message = match rates {
        Some((_, as_pinned)) => format!("matches its pin in {as_pinned} trials"),
        None => "does not match its pin".to_owned(),
    };
    let parts = ChangeParts {
        tool: Some(tool.to_owned()),
        rule,
        pointer: String::new(),
        severity,
        before,
        after,
        message,
        rates,
    };
    parts.into()
}
