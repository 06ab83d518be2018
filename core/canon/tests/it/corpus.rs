//! Every definition of the corpus: detected, read, written back, and converted to every other format.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_canon::{
    CanonicalizedTool, EditMismatch, EmitTarget, EquivalenceClaim, FormatChoice, OriginalSchemas,
    SchemaSlot, TextItem, Warning, canonicalize_item, emit, emit_native,
};
use toolwarden_model::json::{Pointer, parse};
use toolwarden_model::{Format, Tool};
use toolwarden_schema::{SchemaEquivalence, SearchBudget, ValueDomain, check_equivalence};
use toolwarden_testkit::{CorpusDefinition, corpus_definitions};

fn read(sample: &CorpusDefinition) -> Vec<CanonicalizedTool> {
    let item = TextItem {
        pointer: Pointer::root(),
        text: &sample.text,
    };
    canonicalize_item(&item, FormatChoice::Detect)
        .expect("corpus is JSON")
        .tools
}

/// The formats a folder of the corpus may hold. Where it says more than one, the definitions
/// themselves differ: a folder is named for the SDK that carries them.
fn expected(label: &str) -> &'static [Format] {
    match label {
        "mcp" | "mcp_like" => &[Format::Mcp],
        "anthropic" => &[Format::Anthropic],
        "anthropic_builtin" => &[Format::AnthropicServer],
        "bedrock" => &[Format::Bedrock],
        "bfcl" => &[Format::Bfcl],
        "gemini" => &[Format::Gemini, Format::GeminiJsonSchema],
        "gemini_function" => &[Format::Gemini],
        // One entry of the folder records that no schema could be made.
        "langchain" => &[Format::Langchain, Format::Raw],
        "openai_chat" => &[Format::OpenaiChat],
        "openai_function_legacy" => &[Format::OpenaiLegacy],
        "openai_responses" => &[Format::OpenaiResponses],
        _ => &[],
    }
}

#[test]
fn every_format_is_detected() {
    let Some(samples) = corpus_definitions() else {
        return;
    };
    let mut counts: BTreeMap<(String, Format), usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for sample in &samples {
        for found in read(sample) {
            *counts
                .entry((sample.label.clone(), found.tool.format))
                .or_default() += 1;
            if !expected(&sample.label).contains(&found.tool.format) {
                wrong.push(format!("{} told as {}", sample.origin, found.tool.format));
            }
        }
    }
    for ((label, format), count) in &counts {
        println!("{label:24} {format:20} {count:6}");
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(counts.get(&("langchain".to_owned(), Format::Raw)), Some(&1));
}

#[test]
fn written_back_in_its_own_format_every_definition_is_the_same() {
    let Some(samples) = corpus_definitions() else {
        return;
    };
    let mut count = 0;
    for sample in &samples {
        let original = parse(&sample.text).unwrap().value;
        for found in read(sample) {
            let definition = match original
                .get("functionDeclarations")
                .or(original.get("function_declarations"))
            {
                Some(_) => found.pointer.find(&original).unwrap().clone(),
                None => original.clone(),
            };
            let tool = through_file(&found.tool);
            let written = emit_native(tool).value;
            // Text and not value: key order and number spelling count too.
            assert_eq!(
                written.to_string(),
                definition.to_string(),
                "{}",
                sample.origin
            );
            count += 1;
        }
    }
    println!("{count} definitions written back the same");
    assert!(count > 22_000, "{count}");
}

/// The tool as it comes back from a file, without the definition it was read from.
fn through_file(tool: &Tool) -> Tool {
    let mut document = serde_json::to_value(tool).unwrap();
    document
        .as_object_mut()
        .unwrap()
        .shift_remove("original_definition");
    let back = Tool::from_document(parse(&document.to_string()).unwrap().value).unwrap();
    assert_eq!(back.definition, None);
    back
}

const TARGETS: &[EmitTarget] = &[
    EmitTarget::OpenaiChat,
    EmitTarget::OpenaiStrict,
    EmitTarget::OpenaiResponses,
    EmitTarget::OpenaiLegacy,
    EmitTarget::Anthropic,
    EmitTarget::Mcp,
    EmitTarget::Mcp20251125,
    EmitTarget::Mcp20260728,
    EmitTarget::Langchain,
    EmitTarget::Gemini,
    EmitTarget::GeminiJsonSchema,
    EmitTarget::Bedrock,
    EmitTarget::JsonSchema,
    EmitTarget::JsonSchema202012,
];

/// What a tool says, with the account of an emission applied, and no empty lists of extensions.
fn pruned(mut document: Value) -> Value {
    let members = document.as_object_mut().unwrap();
    if let Some(Value::Object(extensions)) = members.get_mut("extensions") {
        extensions.retain(|_, keys| keys.as_object().is_some_and(|keys| !keys.is_empty()));
        if extensions.is_empty() {
            members.shift_remove("extensions");
        }
    }
    document
}

/// Emits, checks that the edits account for every difference, and returns the tool read back.
fn emitted(tool: &Tool, target: EmitTarget, origin: &str) -> Tool {
    let emission = emit(tool.clone(), target).expect("portable");
    let mut accounted = tool.contract();
    for edit in &emission.edits {
        assert!(
            edit.apply(&mut accounted),
            "{origin} to {target}: {edit:?} does not fit {accounted}"
        );
    }
    let text = emission.value.to_string();
    let item = TextItem {
        pointer: Pointer::root(),
        text: &text,
    };
    let mut tools = canonicalize_item(&item, FormatChoice::Format(target.format()))
        .unwrap()
        .tools;
    assert_eq!(tools.len(), 1, "{origin} to {target}: {text}");
    let again = tools.remove(0);
    let errors = again
        .warnings
        .iter()
        .any(|warning| matches!(warning, Warning::ParserError { .. }));
    assert!(!errors, "{origin} to {target}: {:?}", again.warnings);
    assert_eq!(
        stated(accounted, target),
        stated(again.tool.contract(), target),
        "{origin} to {target}"
    );
    again.tool
}

/// A JSON Schema document always states capabilities; stating them does not change the contract.
fn stated(mut document: Value, target: EmitTarget) -> Value {
    if target.format() == Format::JsonSchema {
        document
            .as_object_mut()
            .unwrap()
            .shift_remove("capabilities");
    }
    pruned(document)
}

#[test]
fn through_another_format_and_back_only_what_was_reported_differs() {
    let Some(samples) = corpus_definitions() else {
        return;
    };
    let mut trips: BTreeMap<Format, (usize, usize)> = BTreeMap::new();
    let mut tools: Vec<(String, Tool)> = Vec::new();
    for (index, sample) in distinct(&samples).into_iter().enumerate() {
        for found in read(sample) {
            if found.tool.format.is_hosted() || found.tool.format == Format::Raw {
                continue;
            }
            // No package publishes tools as bare JSON Schemas, so every tenth is made one.
            if index % 10 == 0 {
                let origin = format!("{} as a JSON Schema", sample.origin);
                tools.push((
                    origin,
                    emitted(&found.tool, EmitTarget::JsonSchema, &sample.origin),
                ));
            }
            tools.push((sample.origin.clone(), found.tool));
        }
    }
    // Tools without a name are refused where calls go by names; a few packages publish some.
    let all = tools.len();
    tools.retain(|(_, tool)| !tool.name.is_empty());
    assert!(all - tools.len() < all / 100, "{} of {all}", tools.len());
    for (origin, tool) in tools {
        let home = TARGETS
            .iter()
            .copied()
            .find(|target| target.format() == tool.format);
        let own = emit_native(tool.clone()).value;
        for &target in TARGETS {
            let there = emitted(&tool, target, &origin);
            let Some(home) = home else { continue };
            let back = emitted(&there, home, &origin);
            // Both accounts are exact, so the contract tells whether anything is to differ.
            let same = stated(tool.contract(), target) == stated(back.contract(), target);
            let written = emit(there, home).unwrap().value;
            if same {
                assert_eq!(written, own, "{origin} by {target}");
            } else {
                assert_ne!(written.to_string(), own.to_string(), "{origin} by {target}");
            }
            let (count, unchanged) = trips.entry(tool.format).or_default();
            *count += 1;
            *unchanged += usize::from(same);
        }
    }
    for (format, (count, unchanged)) in &trips {
        println!("{format:20} {count:7} round trips, {unchanged:7} without a difference");
    }
    assert!(trips.contains_key(&Format::Mcp) && trips.contains_key(&Format::Gemini));
}

/// Each text once: versions of a server repeat most of their tools.
fn distinct(samples: &[CorpusDefinition]) -> Vec<&CorpusDefinition> {
    let mut seen = std::collections::BTreeSet::new();
    samples
        .iter()
        .filter(|sample| seen.insert(sample.text.as_str()))
        .collect()
}

/// What the emissions of one part of the corpus came to.
#[derive(Default)]
struct EmissionCounts {
    emissions: usize,
    rewritten: usize,
    undecided: usize,
    broken: Vec<String>,
}

impl EmissionCounts {
    fn add(&mut self, tool: &Tool, target: EmitTarget, origin: &str) {
        let originals = OriginalSchemas::of(tool);
        let emission = emit(tool.clone(), target).expect("portable");
        self.emissions += 1;
        let (mut undecided, mut claims, mut broken) = (false, 0, Vec::new());
        let format = target.format();
        let checked = originals.check(&emission.edits, &emission.value, format, |claim| {
            claims += 1;
            match meaning(&claim) {
                SchemaEquivalence::Same => {}
                SchemaEquivalence::Undecided => undecided = true,
                found => broken.push(format!("{origin} to {target}: {found:?} {}", claim.before)),
            }
            Ok::<(), EditMismatch>(())
        });
        if let Err(error) = checked {
            broken.push(format!("{origin} to {target}: {error}"));
        }
        self.broken.extend(broken);
        self.rewritten += usize::from(claims > 0);
        self.undecided += usize::from(undecided);
    }
}

/// Whether a claim holds.
fn meaning(claim: &EquivalenceClaim) -> SchemaEquivalence {
    let budget = SearchBudget::default();
    if let Some((before, after)) = &claim.inner
        && check_equivalence(before, after, ValueDomain::Values, budget) == SchemaEquivalence::Same
    {
        return SchemaEquivalence::Same;
    }
    let domain = match claim.slot {
        SchemaSlot::Inputs => ValueDomain::Objects,
        SchemaSlot::Outputs => ValueDomain::Values,
    };
    check_equivalence(&claim.before, &claim.after, domain, budget)
}

#[test]
fn no_strict_emission_changes_more_than_it_reports() {
    check_emissions(|target| target == EmitTarget::OpenaiStrict);
}

#[test]
fn no_gemini_emission_changes_more_than_it_reports() {
    check_emissions(|target| target == EmitTarget::Gemini);
}

#[test]
fn no_other_emission_changes_more_than_it_reports() {
    check_emissions(|target| target.dialect().is_none());
}

fn check_emissions(wanted: fn(EmitTarget) -> bool) {
    let Some(samples) = corpus_definitions() else {
        return;
    };
    let mut checked = EmissionCounts::default();
    for sample in distinct(&samples) {
        for found in read(sample) {
            if found.tool.format.is_hosted() || found.tool.name.is_empty() {
                continue;
            }
            for (target, _) in EmitTarget::ALL.iter().filter(|(target, _)| wanted(*target)) {
                checked.add(&found.tool, *target, &sample.origin);
            }
        }
    }
    let EmissionCounts {
        emissions,
        rewritten,
        undecided,
        broken,
    } = checked;
    let shown: Vec<&String> = broken.iter().take(20).collect();
    assert!(shown.is_empty(), "of {emissions} emissions: {shown:#?}");
    assert!(rewritten > 2_000, "{rewritten}");
    // What is undecided are schemas that cannot be read: they are invalid before anything is done.
    assert!(undecided * 50 < rewritten, "{undecided} of {rewritten}");
}
