use std::collections::BTreeMap;

use toolwarden_model::reply::ArgumentsClass;

use super::change::{ContractChange, Severity, sort};
use super::rate::Rate;
use super::snapshot::{Histogram, Snapshot, ToolContract};
use super::tooldrift::ToolCallShape;
use super::tooldrift::printed;

/// What was pinned, by tool. Tools and fields that are not named are not compared.
pub type Pinned = BTreeMap<String, PinnedTool>;

/// What was pinned of a tool: the seven fields of tooldrift, each if it is named, and two shares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PinnedTool {
    /// Whether it is called.
    pub emitted: Option<bool>,
    /// The names of the arguments.
    pub arg_keys: Option<Vec<String>>,
    /// The type of each argument that is named here.
    pub arg_nesting: Option<BTreeMap<String, String>>,
    /// `json_string`, `object` or `absent`.
    pub arguments_encoding: Option<String>,
    /// How often it is called in a reply.
    pub parallel_arity: Option<u64>,
    /// `openai`, `custom` or `absent`.
    pub tool_call_id_format: Option<String>,
    /// Why the model stops, in its word.
    pub finish_reason: Option<String>,
    /// The class of ids.
    pub id_class: Option<String>,
    /// The least share of trials that call it.
    pub emit_rate: Option<f64>,
    /// The least share of calls that fit the schema.
    pub schema_valid_rate: Option<f64>,
}

impl PinnedTool {
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

/// Compares a snapshot with what was pinned, field by field.
///
/// A field is held against every trial that says something about it, and must be as pinned in each of
/// them; only `emit_rate` and `schema_valid_rate` leave room for some that are not. `json_string` pins
/// a string that is the JSON of an object, and `object` an object. A snapshot in which nothing was measured has no differences: ask [`Snapshot::is_measured`] first.
#[must_use]
pub fn against_pinned(snapshot: &Snapshot, expected: &Pinned) -> Vec<ContractChange> {
    let mut changes = Vec::new();
    if !snapshot.is_measured() {
        return changes;
    }
    for (name, pinned) in expected {
        match snapshot.tools.get(name) {
            Some(tool) => against(name, pinned, tool, &mut changes),
            None => changes.push(ContractChange {
                tool: Some(name.clone()),
                field: "emitted".to_owned(),
                pointer: String::new(),
                severity: Severity::Breaking,
                before: "pinned".to_owned(),
                after: "absent".to_owned(),
                note: "the suite has no such tool".to_owned(),
                rates: None,
            }),
        }
    }
    sort(&mut changes);
    changes
}

fn against(
    name: &str,
    pinned: &PinnedTool,
    tool: &ToolContract,
    changes: &mut Vec<ContractChange>,
) {
    for field in &printed::FIELDS {
        if let Some(wanted) = (field.pinned)(pinned) {
            let change = held(name, field.name, field.severity, &wanted, &field.seen, tool);
            let is_encoding = field.name == "arguments_encoding";
            let read = || is_encoding.then(|| readable(name, &wanted, tool))?;
            changes.extend(change.or_else(read));
        }
    }
    for (key, kind) in pinned.arg_nesting.iter().flatten() {
        let field = format!("arg_nesting:{key}");
        let seen = |shape: &ToolCallShape| {
            let kind = shape.arg_nesting.get(key);
            kind.cloned().unwrap_or_else(|| "absent".to_owned())
        };
        changes.extend(held(name, &field, Severity::Breaking, kind, &seen, tool));
    }
    if let Some(class) = &pinned.id_class {
        let change = by_call(
            name,
            "id_class",
            Severity::Warning,
            class,
            class,
            &tool.id_classes,
        );
        changes.extend(change);
    }
    let least = [
        ("emit_rate", pinned.emit_rate, tool.emitted),
        (
            "schema_valid_rate",
            pinned.schema_valid_rate,
            tool.schema_valid,
        ),
    ];
    for (field, wanted, rate) in least {
        if let Some(wanted) = wanted
            && rate.share().is_none_or(|share| share < wanted)
        {
            let before = format!("at least {wanted}");
            let after = match (rate.of, tool.calls) {
                (0, 0) => "not called".to_owned(),
                (0, _) => "not asked for".to_owned(),
                _ => rate.to_string(),
            };
            changes.push(plain(name, field, Severity::Breaking, before, after, None));
        }
    }
}

/// Holds one field against every variant of the seven.
fn held(
    name: &str,
    field: &str,
    severity: Severity,
    wanted: &str,
    seen: &dyn Fn(&ToolCallShape) -> String,
    tool: &ToolContract,
) -> Option<ContractChange> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for variant in &tool.variants {
        // A reply without a call says nothing of its arguments or id.
        if field == "emitted" || field == "finish_reason" || variant.shape.emitted {
            *counts.entry(seen(&variant.shape)).or_default() += variant.trials;
        }
    }
    let of = counts
        .values()
        .fold(0, |sum: u64, it| sum.saturating_add(*it));
    if of == 0 {
        let absent = "not called".to_owned();
        return Some(plain(
            name,
            field,
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
    let value = other(&counts, wanted)?;
    let rates = Some((Rate::new(of, of), as_pinned));
    Some(plain(
        name,
        field,
        severity,
        wanted.to_owned(),
        value,
        rates,
    ))
}

/// Holds what arguments could be read as against the encoding that is pinned.
fn readable(name: &str, wanted: &str, tool: &ToolContract) -> Option<ContractChange> {
    let class = match wanted {
        "json_string" => ArgumentsClass::JsonObjectString,
        "object" => ArgumentsClass::Object,
        _ => return None,
    };
    let field = "arguments_encoding";
    let (severity, class) = (Severity::Breaking, class.as_str());
    by_call(name, field, severity, wanted, class, &tool.encodings)
}

/// Holds a class against every call.
fn by_call(
    name: &str,
    field: &str,
    severity: Severity,
    wanted: &str,
    class: &str,
    seen: &Histogram,
) -> Option<ContractChange> {
    let of = seen
        .values()
        .fold(0, |sum: u64, it| sum.saturating_add(*it));
    let as_pinned = Rate::new(seen.get(class).copied().unwrap_or(0), of);
    if as_pinned.is_always() {
        return None;
    }
    let value = other(seen, class).unwrap_or_else(|| "not called".to_owned());
    let mut change = plain(name, field, severity, wanted.to_owned(), value, None);
    if of > 0 {
        change.note = format!("as pinned in {as_pinned} calls");
        change.rates = Some((Rate::new(of, of), as_pinned));
    }
    Some(change)
}

/// The most frequent of those that are not as pinned.
fn other(counts: &Histogram, wanted: &str) -> Option<String> {
    let mut others = counts.iter().filter(|(value, _)| *value != wanted);
    let first = others.next()?;
    let most = others.fold(
        first,
        |one, other| if other.1 > one.1 { other } else { one },
    );
    Some(most.0.clone())
}

fn plain(
    tool: &str,
    field: &str,
    severity: Severity,
    before: String,
    after: String,
    rates: Option<(Rate, Rate)>,
) -> ContractChange {
    let note = match rates {
        Some((_, as_pinned)) => format!("as pinned in {as_pinned} trials"),
        None => "not as pinned".to_owned(),
    };
    ContractChange {
        tool: Some(tool.to_owned()),
        field: field.to_owned(),
        pointer: String::new(),
        severity,
        before,
        after,
        note,
        rates,
    }
}
