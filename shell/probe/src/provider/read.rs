//! Reads how a provider is described, in a contract and in the table of presets.

use toolwarden_model::closest;
use toolwarden_model::document::{Key, Mistake, Placed, Reader, Section};
use toolwarden_model::json::Object;
use toolwarden_model::reply::Wire;

use super::{Provider, check_base_url, headers, presets};
use crate::file::Problem;

/// The keys a provider has in a contract.
pub(crate) const PROVIDER: &[Key] = &[
    Key::new("base_url"),
    Key::new("model_id").or(&["model"]),
    Key::new("api_key_env").or(&["key_env"]).texts(),
    Key::new("wire"),
    Key::new("extra_body").or(&["request_quirks", "extra"]),
    Key::new("headers"),
];

/// What the members of a request are called that hold a key, or would in a file.
const SECRETS: [&str; 8] = [
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
const RESERVED: [&str; 5] = ["model", "messages", "tools", "tool_choice", "stream"];

const WIRES: [(&str, Wire); 4] = [
    (Wire::OpenaiChat.as_str(), Wire::OpenaiChat),
    (Wire::OpenaiResponses.as_str(), Wire::OpenaiResponses),
    (Wire::Anthropic.as_str(), Wire::Anthropic),
    (Wire::Gemini.as_str(), Wire::Gemini),
];

/// A provider of a contract: a preset with what is said differently, or any other that says all.
pub(crate) fn provider(
    reader: &mut Reader<Problem>,
    name: &str,
    at: &Placed<'_>,
) -> Option<Provider> {
    let preset = Provider::find(name).ok();
    if at.value.is_null() && preset.is_some() {
        return preset;
    }
    if tells_secret(reader, at) {
        return None;
    }
    let section = reader.section(at, PROVIDER);
    let described = section.said("base_url").is_some() && section.said("model_id").is_some();
    if preset.is_none() && !described {
        let names = presets().iter().map(|it| it.name.as_str());
        let mistake = Problem::Provider {
            name: name.to_owned(),
            suggestion: closest(name, names),
        };
        reader.error(&at.pointer, mistake);
    }
    let mut provider = preset.unwrap_or_else(|| Provider::custom(name, "", ""));
    fill(reader, &section, &mut provider);
    Some(provider)
}

/// Takes over what a section says of a provider.
pub(super) fn fill(reader: &mut Reader<Problem>, section: &Section<'_>, provider: &mut Provider) {
    if let Some(at) = section.said("base_url")
        && let Some(text) = reader.line(at, "a base_url")
    {
        match check_base_url(text) {
            Ok(()) => text.clone_into(&mut provider.base_url),
            Err(invalid) => reader.error(&at.pointer, invalid),
        }
    }
    if let Some(at) = section.said("model_id")
        && let Some(text) = reader.line(at, "a model_id")
    {
        text.clone_into(&mut provider.model_id);
    }
    if let Some(at) = section.said("api_key_env") {
        provider.key_env.clear();
        for (name, pointer) in reader.texts(at, "a variable's name") {
            match headers::is_variable(&name) {
                true => provider.key_env.push(name),
                false => reader.error(&pointer, Problem::Variable),
            }
        }
    }
    if let Some(at) = section.said("wire") {
        provider.wire = reader.word(at, &WIRES).unwrap_or(provider.wire);
    }
    if let Some(at) = section.said("extra_body") {
        provider.extra_body = extra(reader, at);
    }
    if let Some(at) = section.said("headers") {
        for (name, at) in reader.named(at, "a header's name") {
            header(reader, name, &at, provider);
        }
    }
}

/// Members to be added to a request.
pub(crate) fn extra(reader: &mut Reader<Problem>, at: &Placed<'_>) -> Object {
    let Some(extra) = reader.object(at) else {
        return Object::new();
    };
    for key in extra.keys() {
        let pointer = at.pointer.child(key);
        if RESERVED.contains(&key.as_str()) {
            let key = key.clone();
            reader.error(&pointer, Problem::Reserved { key });
        }
        if SECRETS.contains(&key.to_ascii_lowercase().as_str()) {
            reader.error(&pointer, Problem::Secret);
        }
    }
    extra.clone()
}

fn header(reader: &mut Reader<Problem>, name: &str, at: &Placed<'_>, provider: &mut Provider) {
    if at.value.is_null() {
        let key = name.to_owned();
        return reader.error(&at.pointer, Mistake::NoValue { key });
    }
    let Some(text) = reader.text(at) else {
        return;
    };
    match headers::check(name, text) {
        Ok(()) => {
            // The name of a header has no case, so that one replaces the preset's.
            let mut known = provider.headers.keys();
            let known = known.find(|it| it.eq_ignore_ascii_case(name)).cloned();
            if let Some(known) = known {
                provider.headers.remove(&known);
            }
            provider.headers.insert(name.to_owned(), text.to_owned());
        }
        Err(problem) => reader.error(&at.pointer, problem),
    }
}

/// Tells of a key that is written into a file. Nothing else there is told, lest it be repeated.
fn tells_secret(reader: &mut Reader<Problem>, at: &Placed<'_>) -> bool {
    let members = at.value.as_object().into_iter().flatten();
    let mut found = false;
    for (key, _) in members {
        let spelled = key.to_ascii_lowercase();
        if SECRETS.contains(&spelled.as_str()) {
            reader.error(&at.pointer.child(key), Problem::Secret);
            found = true;
        }
    }
    found
}
