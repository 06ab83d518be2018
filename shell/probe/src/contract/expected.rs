use std::collections::{BTreeMap, BTreeSet};

use toolwarden_drift::contract::{Pinned, PinnedTool};
use toolwarden_model::document::{Key, Mistake, Placed, Reader};
use toolwarden_model::reply::IdClass;

use crate::file::Problem;

const TOOL: &[Key] = &[
    Key::new("emitted"),
    Key::new("arg_keys").texts(),
    Key::new("arg_nesting"),
    Key::new("arguments_encoding"),
    Key::new("parallel_arity"),
    Key::new("tool_call_id_format"),
    Key::new("finish_reason"),
    Key::new("id_class"),
    Key::new("emit_rate"),
    Key::new("schema_valid_rate"),
];
const TYPES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];
const ENCODINGS: [&str; 3] = ["json_string", "object", "absent"];
const ID_FORMATS: [&str; 3] = ["openai", "custom", "absent"];

/// What has to come out. What is not said is not compared.
pub(super) fn read(reader: &mut Reader<Problem>, at: &Placed<'_>) -> Pinned {
    let named = reader.named(at, "a tool's name").into_iter();
    named
        .map(|(name, at)| (name.to_owned(), tool(reader, &at)))
        .collect()
}

fn tool(reader: &mut Reader<Problem>, at: &Placed<'_>) -> PinnedTool {
    let section = reader.section(at, TOOL);
    let mut tool = PinnedTool::default();
    if let Some(at) = section.said("emitted") {
        tool.emitted = reader.truth(at);
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
        tool.parallel_arity = reader.whole(at);
    }
    if let Some(at) = section.said("finish_reason") {
        tool.finish_reason = reader.text(at).map(ToOwned::to_owned);
    }
    let id_class = section.said("id_class");
    tool.id_class = word(reader, id_class, &IdClass::ALL.map(IdClass::as_str));
    tool.emit_rate = share(reader, section.said("emit_rate"));
    tool.schema_valid_rate = share(reader, section.said("schema_valid_rate"));
    tool
}

/// One of several words that mean themselves.
fn word(
    reader: &mut Reader<Problem>,
    at: Option<&Placed<'_>>,
    words: &[&'static str],
) -> Option<String> {
    let words: Vec<_> = words.iter().map(|word| (*word, *word)).collect();
    reader.word(at?, &words).map(ToOwned::to_owned)
}

/// A part of a whole.
fn share(reader: &mut Reader<Problem>, at: Option<&Placed<'_>>) -> Option<f64> {
    let at = at?;
    let share = reader.number(at)?;
    if (0.0..=1.0).contains(&share) {
        return Some(share);
    }
    let expected = "a share from 0 to 1";
    let found = at.value.to_string();
    reader.error(&at.pointer, Mistake::Type { expected, found });
    None
}
