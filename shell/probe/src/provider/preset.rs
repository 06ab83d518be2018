use std::sync::LazyLock;

use toolwarden_model::document::{Document, Key, Placed, Reader};

use super::Provider;
use super::read::fill;
use crate::file::Problem;

/// The table of presets.
const TABLE: &str = include_str!("../../data/providers.yaml");

const PRESET: &[Key] = &[
    Key::new("base_url"),
    Key::new("model_id"),
    Key::new("further_models").texts(),
    Key::new("api_key_env").texts(),
    Key::new("wire"),
    Key::new("extra_body"),
    Key::new("headers"),
    Key::new("verified_on"),
    Key::new("notes").texts(),
];

/// What is known of a provider.
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
    // A test reads the table, so that there is never a mistake to tell here.
    let (presets, _) = read(TABLE);
    let (providers, models) = presets
        .into_iter()
        .map(|it| (it.provider, it.models))
        .unzip();
    Presets { providers, models }
});

/// The providers that are known by name, in the order of the table.
#[must_use]
pub fn presets() -> &'static [Provider] {
    &PRESETS.providers
}

/// Further models of a preset.
pub(super) fn models(name: &str) -> &'static [String] {
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
    let mut reader = Reader::default();
    let mut presets = Vec::new();
    for (name, at) in reader.named(&document.root(), "a provider's name") {
        presets.push(preset(&mut reader, name, &at));
    }
    let mistakes = reader.finish(&document);
    (presets, mistakes.iter().map(ToString::to_string).collect())
}

fn preset(reader: &mut Reader<Problem>, name: &str, at: &Placed<'_>) -> Preset {
    let section = reader.section(at, PRESET);
    let mut provider = Provider::custom(name, "", "");
    for key in ["base_url", "model_id", "api_key_env"] {
        reader.required(&section, key);
    }
    fill(reader, &section, &mut provider);
    if let Some(at) = section.said("verified_on") {
        provider.verified_on = reader.line(at, "a date").map(ToOwned::to_owned);
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
                        .any(|it| it.contains("compared with nothing"));
                    assert!(said, "{}", provider.name);
                }
            }
            assert!(!models.contains(&provider.model_id), "{}", provider.name);
            assert_eq!(provider.key_env.is_empty(), provider.name == "ollama");
            assert_eq!(models, provider.further_models());
        }
    }

    #[test]
    fn a_mistake_in_a_table_is_told() {
        let (_, mistakes) = read("x:\n  base_url: ftp://a\n  modell_id: m\n  api_key_env: [a-b]\n");
        assert_eq!(
            mistakes,
            [
                "/x: `model_id` is missing",
                "/x/base_url: expected a base_url such as https://api.example.com/v1, \
                 only http and https are spoken",
                "/x/modell_id: unknown key `modell_id`, did you mean `model_id`?",
                "/x/api_key_env/0: expected the name of an environment variable such as \
                 DEEPSEEK_API_KEY",
            ]
        );
    }
}
