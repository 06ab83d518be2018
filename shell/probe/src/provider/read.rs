//! Reads the description of a provider, in a contract and in the table of presets.

use toolwarden_model::did_you_mean;
use toolwarden_model::document::{DiagnosticKind, DocumentReader, KeySpec, LocatedValue, Section};
use toolwarden_model::json::Object;
use toolwarden_model::reply::WireApi;

use super::{Provider, headers, presets};
use crate::base_url::check_base_url;
use crate::probe_file::ProbeFileProblem;

/// The keys of a provider in a contract.
pub(crate) const PROVIDER_KEYS: &[KeySpec] = &[
    KeySpec::new("base_url"),
    KeySpec::new("model_id").alias(&["model"]),
    KeySpec::new("api_key_env").alias(&["key_env"]).text_list(),
    KeySpec::new("wire"),
    KeySpec::new("extra_body").alias(&["request_quirks", "extra"]),
    KeySpec::new("headers"),
];

/// Names of request members that hold a key, or would in a file.
const SECRET_KEYS: [&str; 8] = [
    "api_key",
    "apikey",
    "api-key",
    "key",
    "token",
    "secret",
    "password",
    "authorization",
];

/// The members of the body that the probe sets itself.
const RESERVED_KEYS: [&str; 5] = ["model", "messages", "tools", "tool_choice", "stream"];

const WIRES: [(&str, WireApi); 4] = [
    (WireApi::OpenaiChat.as_str(), WireApi::OpenaiChat),
    (WireApi::OpenaiResponses.as_str(), WireApi::OpenaiResponses),
    (WireApi::Anthropic.as_str(), WireApi::Anthropic),
    (WireApi::Gemini.as_str(), WireApi::Gemini),
];

/// A provider of a contract: a preset with overrides, or another provider that is fully described.
pub(crate) fn read_provider(
    reader: &mut DocumentReader<ProbeFileProblem>,
    name: &str,
    at: &LocatedValue<'_>,
) -> Option<Provider> {
    let preset = Provider::find(name).ok();
    if at.value.is_null() && preset.is_some() {
        return preset;
    }
    if report_secret(reader, at) {
        return None;
    }
    let section = reader.section(at, PROVIDER_KEYS);
    let described = section.said("base_url").is_some() && section.said("model_id").is_some();
    if preset.is_none() && !described {
        let names = presets().iter().map(|it| it.name.as_str());
        let mistake = ProbeFileProblem::Provider {
            name: name.to_owned(),
            suggestion: did_you_mean(name, names),
        };
        reader.report(&at.pointer, mistake);
    }
    let mut provider = preset.unwrap_or_else(|| Provider::custom(name, "", ""));
    read_fields(reader, &section, &mut provider);
    Some(provider)
}

/// Applies what a section says about a provider.
pub(super) fn read_fields(
    reader: &mut DocumentReader<ProbeFileProblem>,
    section: &Section<'_>,
    provider: &mut Provider,
) {
    if let Some(at) = section.said("base_url")
        && let Some(text) = reader.non_blank_text(at, "a base_url")
    {
        match check_base_url(text) {
            Ok(()) => text.clone_into(&mut provider.base_url),
            Err(invalid) => reader.report(&at.pointer, invalid),
        }
    }
    if let Some(at) = section.said("model_id")
        && let Some(text) = reader.non_blank_text(at, "a model_id")
    {
        text.clone_into(&mut provider.model_id);
    }
    if let Some(at) = section.said("api_key_env") {
        provider.key_env.clear();
        for (name, pointer) in reader.texts(at, "a variable's name") {
            match headers::is_variable(&name) {
                true => provider.key_env.push(name),
                false => reader.report(&pointer, ProbeFileProblem::Variable),
            }
        }
    }
    if let Some(at) = section.said("wire") {
        provider.wire = reader.word(at, &WIRES).unwrap_or(provider.wire);
    }
    if let Some(at) = section.said("extra_body") {
        provider.extra_body = read_extra_body(reader, at);
    }
    if let Some(at) = section.said("headers") {
        for (name, at) in reader.named(at, "a header's name") {
            read_header(reader, name, &at, provider);
        }
    }
}

/// Members to be added to a request.
pub(crate) fn read_extra_body(
    reader: &mut DocumentReader<ProbeFileProblem>,
    at: &LocatedValue<'_>,
) -> Object {
    let Some(extra) = reader.object(at) else {
        return Object::new();
    };
    for key in extra.keys() {
        let pointer = at.pointer.child(key);
        if RESERVED_KEYS.contains(&key.as_str()) {
            let key = key.clone();
            reader.report(&pointer, ProbeFileProblem::Reserved { key });
        }
        if SECRET_KEYS.contains(&key.to_ascii_lowercase().as_str()) {
            reader.report(&pointer, ProbeFileProblem::Secret);
        }
    }
    extra.clone()
}

fn read_header(
    reader: &mut DocumentReader<ProbeFileProblem>,
    name: &str,
    at: &LocatedValue<'_>,
    provider: &mut Provider,
) {
    if at.value.is_null() {
        let key = name.to_owned();
        return reader.report(&at.pointer, DiagnosticKind::MissingValue { key });
    }
    let Some(text) = reader.text(at) else {
        return;
    };
    match headers::check_header(name, text) {
        Ok(()) => {
            // Header names are case-insensitive, so a header replaces the preset's of the same
            // name.
            let mut known = provider.headers.keys();
            let known = known.find(|it| it.eq_ignore_ascii_case(name)).cloned();
            if let Some(known) = known {
                provider.headers.remove(&known);
            }
            provider.headers.insert(name.to_owned(), text.to_owned());
        }
        Err(problem) => reader.report(&at.pointer, problem),
    }
}

/// Reports a key that is written into a file. Then nothing else there is reported, so that no
/// message repeats the key.
fn report_secret(reader: &mut DocumentReader<ProbeFileProblem>, at: &LocatedValue<'_>) -> bool {
    let members = at.value.as_object().into_iter().flatten();
    let mut found = false;
    for (key, _) in members {
        let spelled = key.to_ascii_lowercase();
        if SECRET_KEYS.contains(&spelled.as_str()) {
            reader.report(&at.pointer.child(key), ProbeFileProblem::Secret);
            found = true;
        }
    }
    found
}
