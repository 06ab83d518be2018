//! A comparison for a person: one screen per tool, the witness first.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anstyle::Style;
use serde_json::Value;
use toolwarden_drift::shape::ShapeDrift;
use toolwarden_drift::text::TextFinding;
use toolwarden_drift::{
    CallEffect, Change, ChangeClass, Drift, Facet, Judgement, SchemaDrift, ToolDrift,
    ToolwatchChangeType,
};
use toolwarden_schema::{Callers, Witness};

use super::comparison::ServerComparison;
use super::info_notes::{InfoNote, partition_notes};
use super::marked_words::marked_words;
use super::text_layout::{from_first_difference, spaced_json, truncate, wrap};
use crate::style::{self, escape_controls};

/// The width of one of two columns.
const COLUMN_WIDTH: usize = 44;
/// The most tools that are named in a line about several.
const MAX_NAMED: usize = 8;
/// The most recorded calls that are named.
const MAX_CALLS: usize = 5;
/// The most changes of one tool that are shown in full.
const MAX_CHANGES: usize = 12;

pub(super) fn render(comparison: &ServerComparison<'_>) -> String {
    let mut screen = TextReport {
        text: String::new(),
        comparison,
    };
    let mut tools: Vec<&ToolDrift> = comparison.drift.tools.iter().collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(tool.class()));
    let (noted, told) = partition_notes(tools);
    for tool in told {
        screen.tool(tool);
    }
    screen.notes(&noted);
    screen.summary();
    screen.text
}

struct TextReport<'c> {
    text: String,
    comparison: &'c ServerComparison<'c>,
}

impl TextReport<'_> {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn tool(&mut self, tool: &ToolDrift) {
        let class = tool.class();
        let colour = colour(class);
        let place = self.comparison.location(tool).map(|place| {
            let position =
                place.positions(std::iter::once(&toolwarden_model::json::Pointer::root()));
            let line = position.first().map_or(1, |position| position.line);
            format!("{}:{line}", place.file)
        });
        let (name, dim) = (escape_controls(tool.tool()), style::DIM);
        self.line(&format!(
            "{colour}{}{colour:#} {name} {dim}{}{dim:#}",
            class.as_str().to_uppercase(),
            place.unwrap_or_default()
        ));
        match tool {
            ToolDrift::Added { findings, .. } => {
                self.line("  the tool is new");
                self.reasons(findings);
            }
            ToolDrift::Removed { .. } => {
                self.line("  the tool is gone: every call of it fails now")
            }
            ToolDrift::Renamed { rename, drift } => {
                let (from, to) = (escape_controls(&rename.from), escape_controls(&rename.to));
                let percent = (rename.similarity * 100.0).round();
                self.line(&format!(
                    "  `{from}` was probably renamed to `{to}` (similarity {percent} %)"
                ));
                self.drift(drift);
            }
            ToolDrift::Changed(drift) => self.drift(drift),
        }
        let next = next_step(tool);
        self.line(&format!("  {0}next:{0:#} {next}", style::DIM));
        self.line("");
    }

    /// What changes nothing, in a line for all tools.
    fn notes(&mut self, noted: &BTreeMap<InfoNote, Vec<&ToolDrift>>) {
        for (what, tools) in noted {
            let names: Vec<String> = tools.iter().map(|it| escape_controls(it.tool())).collect();
            let count = match names.len() {
                1 => "1 tool".to_owned(),
                count => format!("{count} tools"),
            };
            let more = names.len().saturating_sub(MAX_NAMED);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let named = names
                .iter()
                .take(MAX_NAMED)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let (good, dim) = (style::SUCCESS, style::DIM);
            self.line(&format!(
                "{good}INFO{good:#} {count}: {what} {dim}({named}{more}){dim:#}"
            ));
        }
        if !noted.is_empty() {
            self.line("");
        }
    }

    fn drift(&mut self, drift: &Drift) {
        let callers = self.comparison.options.callers;
        if let Some(input) = &drift.input {
            self.schema(input, Facet::Input, callers);
        }
        let breaks = |change: &Change| {
            change.evidence.facet == Facet::Output && change.class == ChangeClass::Breaking
        };
        if let Some(output) = &drift.output
            && drift.changes.iter().any(breaks)
        {
            self.schema(output, Facet::Output, callers);
        }
        for change in drift.changes.iter().take(MAX_CHANGES) {
            self.change(change, drift);
        }
        if let Some(said) = &drift.results {
            self.shape_drift(&drift.tool, said);
        }
        let more = drift.changes.len().saturating_sub(MAX_CHANGES);
        if more > 0 {
            self.line(&format!(
                "  {0}and {more} more; --format json has all of them{0:#}",
                style::DIM
            ));
        }
    }

    /// What the change of a schema means as a whole: the proof first.
    fn schema(&mut self, drift: &SchemaDrift, facet: Facet, callers: Callers) {
        match (drift.for_callers(callers), facet) {
            (Judgement::Breaking(witness), Facet::Input) => {
                let made = drift.replay.as_ref().is_some_and(|it| it.first.is_some());
                self.line(if made {
                    "  this call was made, worked, and is rejected now:"
                } else {
                    "  this call worked and is rejected now:"
                });
                self.witness(witness, facet);
            }
            (Judgement::Breaking(witness), _) => {
                self.line("  this result may come now and could not before:");
                self.witness(witness, facet);
            }
            (Judgement::Unknown(unknown), _) => {
                self.line(&format!(
                    "  not established for the {}: {}",
                    facet.as_str(),
                    escape_controls(unknown.reason.text())
                ));
                for obstacle in unknown.obstacles.iter().take(3) {
                    let place = escape_controls(&obstacle.pointer.to_string());
                    self.line(&format!("    {0}at {place}{0:#}", style::DIM));
                }
            }
            (Judgement::Equivalent | Judgement::Compatible(_), _) => {}
        }
        if let Some(replayed) = &drift.replay {
            self.line(&format!(
                "  of {} recorded calls {} were valid before, {} of those would be rejected now",
                replayed.calls, replayed.accepted, replayed.rejected
            ));
            for lost in replayed.lost.iter().take(MAX_CALLS) {
                self.line(&format!(
                    "  recorded call {} loses `{}`: {}",
                    lost.index + 1,
                    escape_controls(lost.pointer.as_str()),
                    escape_controls(&truncate(&spaced_json(&lost.call), 100))
                ));
            }
            let more = replayed.lost.len().saturating_sub(MAX_CALLS);
            if more > 0 {
                self.line(&format!(
                    "  and {more} more values of recorded calls are lost"
                ));
            }
        }
        let other = match callers {
            Callers::Declared => (&drift.open, "sends keys the old schema did not declare"),
            Callers::Open => (&drift.declared, "sends declared keys only"),
        };
        if facet == Facet::Input && other.0.as_str() != drift.for_callers(callers).as_str() {
            self.line(&format!(
                "  {0}for a caller that {1}: {2}{0:#}",
                style::DIM,
                other.1,
                other.0.as_str()
            ));
        }
    }

    fn witness(&mut self, witness: &Witness, facet: Facet) {
        let (error, dim) = (style::ERROR, style::DIM);
        for line in wrap(&spaced_json(&witness.value), COLUMN_WIDTH * 2) {
            self.line(&format!("    {error}{line}{error:#}"));
        }
        let side = if facet == Facet::Output { "old" } else { "new" };
        self.line(&format!(
            "    {} {dim}({side} schema, {}){dim:#}",
            escape_controls(&truncate(&witness.message, 160)),
            escape_controls(&witness.schema_pointer.to_string())
        ));
    }

    fn change(&mut self, change: &Change, drift: &Drift) {
        let colour = colour(change.class);
        let dim = style::DIM;
        // The message of a result says where already.
        let place = if change.evidence.facet == Facet::Result {
            String::new()
        } else {
            escape_controls(change.pointer.as_str())
        };
        self.line(&format!(
            "  {colour}{:<11}{colour:#} {} {dim}{place}{dim:#}",
            change.class.as_str(),
            escape_controls(&change.message),
        ));
        self.reasons(&change.evidence.reasons);
        match &change.evidence.judgement {
            Some(Judgement::Breaking(witness)) if !self.is_shown(witness, drift) => {
                let value = truncate(&spaced_json(&witness.value), 100);
                let told = if change.evidence.facet == Facet::Output {
                    "may come now"
                } else {
                    "rejected now"
                };
                self.line(&format!(
                    "      {dim}{told}:{dim:#} {}",
                    escape_controls(&value)
                ));
            }
            Some(Judgement::Compatible(Some(gained)))
                if change.evidence.facet == Facet::Input
                    && change.class != ChangeClass::Ignored =>
            {
                let value = truncate(&spaced_json(gained), 100);
                self.line(&format!(
                    "      {dim}accepted now:{dim:#} {}",
                    escape_controls(&value)
                ));
            }
            _ => {}
        }
        self.effect(change);
        if let Some(adapter) = change
            .evidence
            .rename
            .as_ref()
            .and_then(|rename| rename.adapter.as_ref())
        {
            self.line(&format!(
                "      {dim}send instead:{dim:#} {}",
                escape_controls(adapter)
            ));
        }
        let words = marked_words(change);
        if words.is_empty() {
            self.side_by_side(change.before.as_ref(), change.after.as_ref());
            return;
        }
        for line in wrap(&words, COLUMN_WIDTH * 2) {
            self.line(&format!("      {line}"));
        }
    }

    /// A call that is still accepted and means something else.
    fn effect(&mut self, change: &Change) {
        let dim = style::DIM;
        let show = |call: &Value| escape_controls(&truncate(&spaced_json(call), 100));
        match &change.evidence.effect {
            Some(CallEffect::Ignored { call, pointer }) => {
                let (call, at) = (show(call), escape_controls(pointer.as_str()));
                self.line(&format!(
                    "      {dim}accepted, and `{at}` is not read:{dim:#} {call}"
                ));
            }
            Some(CallEffect::Default {
                calls: Some((before, after)),
                ..
            }) => {
                let (before, after) = (show(before), show(after));
                self.line(&format!(
                    "      {dim}a call without it meant{dim:#} {before}"
                ));
                self.line(&format!(
                    "      {dim}and means now{dim:#}           {after}"
                ));
            }
            Some(CallEffect::Default { calls: None, .. }) | None => {}
        }
    }

    fn is_shown(&self, witness: &Witness, drift: &Drift) -> bool {
        let callers = self.comparison.options.callers;
        [&drift.input, &drift.output].into_iter().flatten().any(|schema| {
            matches!(schema.for_callers(callers), Judgement::Breaking(shown) if shown.value == witness.value)
        })
    }

    fn reasons(&mut self, findings: &[TextFinding]) {
        let warning = style::WARNING;
        for finding in findings {
            self.line(&format!(
                "      {warning}!{warning:#} {}",
                escape_controls(&finding.message)
            ));
            if let Some(decoded) = &finding.decoded {
                self.line(&format!("        reads: {}", escape_controls(decoded)));
            }
        }
    }

    fn side_by_side(&mut self, before: Option<&Value>, after: Option<&Value>) {
        if before.is_none() && after.is_none() {
            return;
        }
        let show = |value: Option<&Value>| match value {
            None => vec!["(nothing)".to_owned()],
            Some(Value::String(text)) => wrap(text, COLUMN_WIDTH),
            Some(value) => wrap(&spaced_json(value), COLUMN_WIDTH),
        };
        let (before, after) = from_first_difference(show(before), show(after));
        let dim = style::DIM;
        for index in 0..before.len().max(after.len()) {
            let cell = |lines: &[String]| lines.get(index).cloned().unwrap_or_default();
            let (left, right) = (cell(&before), cell(&after));
            let padding = " ".repeat(COLUMN_WIDTH.saturating_sub(left.chars().count()));
            self.line(&format!("      {left}{padding} {dim}│{dim:#} {right}"));
        }
    }

    /// What results say of tools that did not drift.
    fn results(&mut self) {
        for (tool, said) in &self.comparison.drift.results {
            self.shape_drift(tool, said);
        }
    }

    fn shape_drift(&mut self, tool: &str, said: &ShapeDrift) {
        let dim = style::DIM;
        for note in &said.notes {
            self.line(&format!(
                "  {dim}note:{dim:#} `{}`: {}; too few results to call it drift",
                escape_controls(tool),
                escape_controls(&note.message)
            ));
        }
        if let Some(limit) = said.too_few() {
            let warning = style::WARNING;
            self.line(&format!(
                "  {warning}not measured:{warning:#} results of `{}`: {}; --fixtures compares reproducible results exactly",
                escape_controls(tool),
                escape_controls(&limit.to_string())
            ));
            return;
        }
        if said.notes.is_empty() && said.changes.is_empty() {
            return;
        }
        for limit in &said.limits {
            let told = escape_controls(&limit.to_string());
            self.line(&format!("  {dim}{told}{dim:#}"));
        }
    }

    fn summary(&mut self) {
        self.results();
        let drift = self.comparison.drift;
        let mut counts = String::new();
        for class in ChangeClass::ALL.into_iter().rev() {
            let count = drift
                .tools
                .iter()
                .filter(|tool| tool.class() == class)
                .count();
            if count > 0 {
                let colour = colour(class);
                let comma = if counts.is_empty() { "" } else { ", " };
                write!(
                    counts,
                    "{comma}{colour}{count} {}{colour:#}",
                    class.as_str()
                )
                .unwrap_or_default();
            }
        }
        let tools = |count: usize| {
            if count == 1 {
                "1 tool".to_owned()
            } else {
                format!("{count} tools")
            }
        };
        let (drifted, same) = (drift.tools.len(), drift.unchanged);
        let results = drift.results.iter();
        let unmeasured = results.filter(|(_, said)| said.too_few().is_some()).count();
        if drifted == 0 && unmeasured > 0 {
            self.line(&format!(
                "{0}results not measured{0:#} of {1}; definitions: no drift, {2} unchanged",
                style::WARNING,
                tools(unmeasured),
                tools(same)
            ));
        } else if drifted == 0 {
            self.line(&format!(
                "{0}no drift{0:#}: {1} unchanged",
                style::SUCCESS,
                tools(same)
            ));
        } else {
            self.line(&format!(
                "{} drifted: {counts}; {same} unchanged",
                tools(drifted)
            ));
        }
    }
}

/// The command to run next after a drift.
fn next_step(tool: &ToolDrift) -> &'static str {
    match (tool, tool.class()) {
        (ToolDrift::Removed { .. }, _) => {
            "take it from the agents that use it, or stay on the old version"
        }
        (ToolDrift::Renamed { .. }, _) => {
            "offer it under both names until its callers know the new one"
        }
        (ToolDrift::Added { .. }, ChangeClass::Added) => {
            "decide whether agents may have it, and approve it"
        }
        (ToolDrift::Changed(drift), ChangeClass::Behavioural | ChangeClass::Widened)
            if drift.change_type() == Some(ToolwatchChangeType::Response) =>
        {
            "look at what reads the results; approve them if it can"
        }
        (ToolDrift::Changed(drift), ChangeClass::Breaking) if breaks_only_results(drift) => {
            "change what reads the results, or stay on the old version until it does"
        }
        (_, ChangeClass::Breaking) => {
            "change what callers send, or stay on the old version until they do"
        }
        (_, ChangeClass::Trust) => "let a person read it before any model does",
        (_, ChangeClass::Unknown) => {
            "replay real calls with --observed, or compare the named places by hand"
        }
        (_, ChangeClass::Ignored) => "change what callers send: what they say is no longer read",
        (_, ChangeClass::Text | ChangeClass::Added) => {
            "read the added words as a model would, and approve them if it may follow them"
        }
        (_, ChangeClass::Widened) => {
            "no call is rejected; decide whether agents may use what is new"
        }
        (_, ChangeClass::Behavioural) => {
            "no call is rejected; decide whether it may do what it does now"
        }
        (_, ChangeClass::Structural) => "no call is rejected; results can be checked now",
        (_, ChangeClass::Equivalent | ChangeClass::Info) => "nothing",
    }
}

fn breaks_only_results(drift: &Drift) -> bool {
    let mut breaking = drift
        .changes
        .iter()
        .filter(|change| change.class == ChangeClass::Breaking);
    breaking.all(|change| matches!(change.evidence.facet, Facet::Output | Facet::Result))
}

fn colour(class: ChangeClass) -> Style {
    match class {
        ChangeClass::Breaking | ChangeClass::Trust | ChangeClass::Ignored => style::ERROR,
        ChangeClass::Unknown
        | ChangeClass::Added
        | ChangeClass::Text
        | ChangeClass::Widened
        | ChangeClass::Structural => style::WARNING,
        ChangeClass::Behavioural => style::LOCATION,
        ChangeClass::Equivalent | ChangeClass::Info => style::SUCCESS,
    }
}
