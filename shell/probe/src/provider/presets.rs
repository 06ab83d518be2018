use std::sync::LazyLock;

use toolwarden_model::document::{Document, DocumentReader, KeySpec, LocatedValue};

use super::Provider;
use super::read::read_fields;
use crate::probe_file::ProbeFileProblem;

/// The table of presets.
const TABLE: &str = include_str!("../../data/providers.yaml");

const PRESET: &[KeySpec] = &[
    KeySpec::new("base_url"),
    KeySpec::new("model_id"),
    KeySpec::new("further_models").text_list(),
    KeySpec::new("api_key_env").text_list(),
    KeySpec::new("wire"),
    KeySpec::new("extra_body"),
    KeySpec::new("headers"),
    KeySpec::new("verified_on"),
    KeySpec::new("notes").text_list(),
];

/// One entry of the table.
#[derive(Debug)]
struct Preset {
    provider: Provider,
    models: Vec<String>,
}

struct Presets {
    providers: Vec<Provider>,
    /// Further models, in the order of the providers.
    models: Vec<Vec<String>>,
}

static PRESETS: LazyLock<Presets> = LazyLock::new(|| {
    // A test reads the table, so it never contains mistakes here.
    let (presets, _) = read(TABLE);
    let (providers, models) = presets
        .into_iter()
        .map(|it| (it.provider, it.models))
        .unzip();
    Presets { providers, models }
});

/// The presets, in table order.
#[must_use]
pub fn presets() -> &'static [Provider] {
    &PRESETS.providers
}

/// Further models of a preset.
pub(super) fn further_models(name: &str) -> &'static [String] {
    let mut both = PRESETS.providers.iter().zip(&PRESETS.models);
    let found = both.find(|(provider, _)| provider.name == name);
    found.map_or(&[], |(_, models)| models)
}

/// The presets of a table, and every mistake in it as a line of text.
fn read(table: &str) -> (Vec<Preset>, Vec<String>) {
    let document = match Document::read(table) {
        Ok(document) => document,
        Err(error) => return (Vec::new(), vec![error.to_string()]),
    };
    let mut reader = DocumentReader::default();
    let mut presets = Vec::new();
    for (name, at) in reader.named(&document.root(), "a provider's name") {
        presets.push(preset(&mut reader, name, &at));
    }
    let mistakes = reader.finish(&document);
    (presets, mistakes.iter().map(ToString::to_string).collect())
}

fn preset(
    reader: &mut DocumentReader<ProbeFileProblem>,
    name: &str,
    at: &LocatedValue<'_>,
) -> Preset {
    let section = reader.section(at, PRESET);
    let mut provider = Provider::custom(name, "", "");
    for key in ["base_url", "model_id", "api_key_env"] {
        reader.required(&section, key);
    }
    read_fields(reader, &section, &mut provider);
    if let Some(at) = section.said("verified_on") {
        provider.verified_on = reader.non_blank_text(at, "a date").map(ToOwned::to_owned);
    }
    let mut texts = |key, what| {
        let at = section.said(key);
        let texts = at.map(|at| reader.texts(at, what)).unwrap_or_default();
        texts.into_iter().map(|(text, _)| text).collect()
    };
    provider.notes = texts("notes", "a note");
    let models = texts("further_models", "a model");
    Preset { provider, models }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_no_mistake() {
        let (presets, mistakes) = read(TABLE);
        assert_eq!(mistakes, Vec::<String>::new());
        let names: Vec<&str> = presets.iter().map(|it| it.provider.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "deepseek",
                "qwen",
                "kimi",
                "glm",
                "minimax",
                "doubao",
                "hunyuan",
                "stepfun",
                "ernie",
                "baichuan",
                "mimo",
                "openai",
                "openai-responses",
                "anthropic",
                "gemini",
                "mistral",
                "ollama",
                "vllm"
            ]
        );
        for Preset { provider, models } in &presets {
            match &provider.verified_on {
                Some(date) => {
                    let date: jiff::civil::Date = date.parse().unwrap();
                    assert!(date.year() >= 2026, "{}", provider.name);
                }
                None => {
                    let said = provider
                        .notes
                        .iter()
                        .any(|it| it.contains("have not been verified"));
                    assert!(said, "{}", provider.name);
                }
            }
            assert!(!models.contains(&provider.model_id), "{}", provider.name);
            assert_eq!(provider.key_env.is_empty(), provider.name == "ollama");
            assert_eq!(models, provider.further_models());
        }
    }

    #[test]
    fn table_mistakes_are_reported() {
        let (_, mistakes) = read("x:\n  base_url: ftp://a\n  modell_id: m\n  api_key_env: [a-b]\n");
        assert_eq!(
            mistakes,
            [
                "/x: `model_id` is missing",
                "/x/base_url: expected a base_url such as https://api.example.com/v1, \
                 only http and https are supported",
                "/x/modell_id: unknown key `modell_id`, did you mean `model_id`?",
                "/x/api_key_env/0: expected the name of an environment variable such as \
                 DEEPSEEK_API_KEY",
            ]
        );
    }
}
