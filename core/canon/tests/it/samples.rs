//! One sample per format, with what becomes of it. `UPDATE_GOLDEN=1` writes the expected files.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolwarden_canon::{
    Dialect, EmitTarget, FormatChoice, TextItem, canonicalize_item, emit_native,
};
use toolwarden_model::Format;
use toolwarden_model::json::{Pointer, parse};

pub(crate) fn data(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(folder)
}

/// Compares with a golden file, or writes it when asked to.
pub(crate) fn golden(path: &Path, found: &Value) {
    let found = serde_json::to_string_pretty(found).unwrap() + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        found,
        expected,
        "{}: if this is right, run the test with UPDATE_GOLDEN=1",
        path.display()
    );
}

#[test]
fn every_format_has_a_sample_that_is_detected_and_round_trips() {
    for &format in Format::ALL {
        let folder = data("formats");
        let text =
            std::fs::read_to_string(folder.join(format!("{format}.json"))).unwrap_or_default();
        assert!(
            !text.is_empty(),
            "tests/data/formats/{format}.json is missing"
        );
        let item = TextItem {
            pointer: Pointer::root(),
            text: text.trim(),
        };
        // The bytes of these two are the same, so the second can only be asked for.
        let source = match format {
            Format::GeminiInteractions => FormatChoice::Format(format),
            _ => FormatChoice::Detect,
        };
        let mut tools = canonicalize_item(&item, source).unwrap().tools;
        assert_eq!(tools.len(), 1, "{format}");
        let read = tools.remove(0);
        match format {
            Format::Canonical => assert_eq!(read.tool.format, Format::OpenaiChat),
            format => assert_eq!(
                read.tool.format, format,
                "{format} told as {}",
                read.tool.format
            ),
        }
        let mut document = serde_json::to_value(&read.tool).unwrap();
        document
            .as_object_mut()
            .unwrap()
            .shift_remove("original_definition");
        let warnings: Vec<String> = read.warnings.iter().map(ToString::to_string).collect();
        document["warnings"] = warnings.into();
        golden(&folder.join(format!("expected/{format}.json")), &document);
        // An operation is one of many in its document, and the canonical form has no format to go back to.
        if !matches!(format, Format::Openapi | Format::Canonical) {
            let original = parse(&text).unwrap().value;
            assert_eq!(
                emit_native(read.tool).value.to_string(),
                original.to_string(),
                "{format}"
            );
        }
    }
}

#[test]
fn the_document_lists_every_format_target_and_dialect() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/canon.md");
    let docs = std::fs::read_to_string(path).unwrap();
    // `raw` is what is left over, and the draft is an option of the command.
    let formats = Format::ALL
        .iter()
        .map(|format| format.id())
        .filter(|id| *id != "raw");
    let targets = EmitTarget::ALL
        .iter()
        .map(|(target, _)| target.id())
        .filter(|id| *id != "json-schema-2020-12");
    for id in formats.chain(targets) {
        assert!(
            docs.contains(&format!("`{id}`")),
            "docs/canon.md does not mention `{id}`"
        );
    }
    for dialect in Dialect::ALL {
        let row = format!("| `{dialect}` | {} |", dialect.facts().source);
        assert!(docs.contains(&row), "docs/canon.md lacks the row {row}");
    }
}

#[test]
fn undecidable_definitions_are_reported_as_such() {
    let text = std::fs::read_to_string(data("formats").join("gemini-interactions.json")).unwrap();
    let item = TextItem {
        pointer: Pointer::root(),
        text: &text,
    };
    let read = canonicalize_item(&item, FormatChoice::Detect)
        .unwrap()
        .tools
        .remove(0);
    assert_eq!(read.detection.format, Format::OpenaiResponses);
    assert_eq!(read.detection.ambiguous_with, [Format::GeminiInteractions]);
    assert_eq!(
        read.warnings
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["Format is ambiguous: taken as openai-responses, could be gemini-interactions."]
    );
}
