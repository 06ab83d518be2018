use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::document::{DiagnosticKind, DocumentReader, KeySpec, LocatedValue};
use toolwarden_model::reply::CallIdClass;
use toolwarden_trials::{FaultLimits, PinnedContract, PinnedToolContract};

use crate::probe_file::ProbeFileProblem;

const TOOL_KEYS: &[KeySpec] = &[
    KeySpec::new("emitted"),
    KeySpec::new("arg_keys").text_list(),
    KeySpec::new("arg_nesting"),
    KeySpec::new("arguments_encoding"),
    KeySpec::new("parallel_arity"),
    KeySpec::new("tool_call_id_format"),
    KeySpec::new("finish_reason"),
    KeySpec::new("id_class"),
    KeySpec::new("emit_rate"),
    KeySpec::new("schema_valid_rate"),
];
const TYPES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];
const ENCODINGS: [&str; 3] = ["json_string", "object", "absent"];
const ID_FORMATS: [&str; 3] = ["openai", "custom", "absent"];

/// Reads the expected values. Values that are not given are not compared.
pub(super) fn read(
    reader: &mut DocumentReader<ProbeFileProblem>,
    at: &LocatedValue<'_>,
) -> PinnedContract {
    let named = reader.named(at, "a tool's name").into_iter();
    named
        .map(|(name, at)| (name.to_owned(), tool(reader, &at)))
        .collect()
}

/// Reads how often faults may occur.
pub(super) fn read_fault_limits(
    reader: &mut DocumentReader<ProbeFileProblem>,
    at: &LocatedValue<'_>,
) -> FaultLimits {
    let words: Vec<&'static str> = FaultLimits::words().collect();
    let keys: Vec<KeySpec> = words.iter().map(|word| KeySpec::new(word)).collect();
    let section = reader.section(at, &keys);
    let mut limits = FaultLimits::default();
    for word in words {
        if let Some(share) = share(reader, section.said(word)) {
            limits.allow(word, share);
        }
    }
    limits
}

fn tool(
    reader: &mut DocumentReader<ProbeFileProblem>,
    at: &LocatedValue<'_>,
) -> PinnedToolContract {
    let section = reader.section(at, TOOL_KEYS);
    let mut tool = PinnedToolContract::default();
    if let Some(at) = section.said("emitted") {
        tool.emitted = reader.boolean(at);
    }
    if let Some(at) = section.said("arg_keys") {
        let keys = reader.texts(at, "an argument's name").into_iter();
        let keys: BTreeSet<String> = keys.map(|(key, _)| key).collect();
        tool.arg_keys = Some(keys.into_iter().collect());
    }
    if let Some(at) = section.said("arg_nesting") {
        let mut types = BTreeMap::new();
        for (name, at) in reader.named(at, "an argument's name") {
            let word = word(reader, Some(&at), &TYPES);
            types.extend(word.map(|word| (name.to_owned(), word)));
        }
        tool.arg_nesting = Some(types);
    }
    let encoding = section.said("arguments_encoding");
    tool.arguments_encoding = word(reader, encoding, &ENCODINGS);
    let id_format = section.said("tool_call_id_format");
    tool.tool_call_id_format = word(reader, id_format, &ID_FORMATS);
    if let Some(at) = section.said("parallel_arity") {
        tool.parallel_arity = reader.unsigned(at);
    }
    if let Some(at) = section.said("finish_reason") {
        tool.finish_reason = reader.text(at).map(ToOwned::to_owned);
    }
    let id_class = section.said("id_class");
    tool.id_class = word(reader, id_class, &CallIdClass::ALL.map(CallIdClass::as_str));
    tool.emit_rate = share(reader, section.said("emit_rate"));
    tool.schema_valid_rate = share(reader, section.said("schema_valid_rate"));
    tool
}

/// One of several words, returned unchanged.
fn word(
    reader: &mut DocumentReader<ProbeFileProblem>,
    at: Option<&LocatedValue<'_>>,
    words: &[&'static str],
) -> Option<String> {
    let words: Vec<_> = words.iter().map(|word| (*word, *word)).collect();
    reader.word(at?, &words).map(ToOwned::to_owned)
}

/// A fraction from 0 to 1.
fn share(
    reader: &mut DocumentReader<ProbeFileProblem>,
    at: Option<&LocatedValue<'_>>,
) -> Option<f64> {
    let at = at?;
    let share = reader.number(at)?;
    if (0.0..=1.0).contains(&share) {
        return Some(share);
    }
    let expected = "a share from 0 to 1";
    let found = at.value.to_string();
    reader.report(&at.pointer, DiagnosticKind::WrongType { expected, found });
    None
}
