use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use crate::shared::shared_folder;

/// One published definition.
#[derive(Clone, Debug)]
pub struct CorpusDefinition {
    /// Its file, and its position there.
    pub origin: String,
    /// The corpus's name for its format: the name of the folder.
    pub label: String,
    /// Its text, byte for byte.
    pub text: String,
}

/// Every definition of the corpus in a fixed order; `None` without a corpus.
#[must_use]
pub fn corpus_definitions() -> Option<Vec<CorpusDefinition>> {
    let corpus = shared_folder()?.join("corpus");
    let mut samples = Vec::new();
    for file in json_files(&corpus.join("mcp")) {
        collect(&file, "mcp", &mut samples);
    }
    for folder in sorted_entries(&corpus.join("other")) {
        let label = folder
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        if label == "tool_calls" {
            continue;
        }
        for file in json_files(&folder) {
            collect(&file, &label, &mut samples);
        }
    }
    Some(samples)
}

/// The files with the tool lists of published MCP servers.
#[must_use]
pub fn mcp_servers() -> Option<Vec<PathBuf>> {
    Some(json_files(&shared_folder()?.join("corpus/mcp")))
}

#[derive(serde::Deserialize)]
struct CorpusFile<'t> {
    #[serde(borrow)]
    tools: Vec<&'t RawValue>,
}

#[derive(serde::Deserialize)]
struct WrappedTool<'t> {
    #[serde(borrow)]
    tool: &'t RawValue,
}

#[expect(
    clippy::expect_used,
    reason = "a broken corpus file must fail the test that reads it"
)]
fn collect(file: &Path, label: &str, samples: &mut Vec<CorpusDefinition>) {
    let text = std::fs::read_to_string(file).expect("corpus file is readable");
    let parsed: CorpusFile<'_> = serde_json::from_str(&text).expect("corpus file has tools");
    for (index, raw) in parsed.tools.iter().enumerate() {
        let wrapped = serde_json::from_str::<WrappedTool<'_>>(raw.get());
        let text = wrapped.map_or(raw.get(), |wrapped| wrapped.tool.get());
        let name = file
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let origin = format!("{label}/{name}#{index}");
        samples.push(CorpusDefinition {
            origin,
            label: label.to_owned(),
            text: text.to_owned(),
        });
    }
}

fn json_files(folder: &Path) -> Vec<PathBuf> {
    sorted_entries(folder)
        .into_iter()
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect()
}

#[expect(
    clippy::expect_used,
    reason = "a corpus folder that cannot be listed must fail the test"
)]
fn sorted_entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("corpus folder is readable");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("corpus entry is readable").path())
        .collect();
    paths.sort();
    paths
}
