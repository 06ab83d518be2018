use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolwarden_model::json::Pointer;

use crate::change::{ChangeClass, ToolwatchChangeType};
use crate::compare::compare_in_server;
use crate::definition_drift::Drift;
use crate::facet::{Facet, ObservedDefinition};
use crate::options::Options;
use crate::recorded_call::RecordedCall;
use crate::rename::{Rename, RenameCandidate, match_renames};
use crate::routes::mark_same_operation;
use crate::shape::ShapeDrift;
use crate::text::{self, Detector, TextFinding, Weight, is_suspicious};

/// What changed between two lists of tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListDrift {
    /// Every tool that drifted, in the order of the new list, followed by the removed tools.
    pub tools: Vec<ToolDrift>,
    /// The tools that are in both lists and did not change.
    pub unchanged: usize,
    /// What the results of tools without drift still show, by tool.
    pub results: Vec<(String, ShapeDrift)>,
}

impl ListDrift {
    /// Marks the harmless-looking changes of a tool as unknown, because their meaning cannot be
    /// determined.
    pub fn mark_unknown(&mut self, tool: &str) {
        for known in &mut self.tools {
            if let ToolDrift::Changed(drift) = known
                && drift.tool == tool
            {
                drift.mark_unknown();
            }
        }
    }

    /// Adds a second tool with the same name, unless the list already reports it as added: a call of
    /// that name may reach either tool.
    pub fn add_double(&mut self, name: &str) {
        let mut known = self.tools.iter();
        let known = known.any(|it| matches!(it, ToolDrift::Added { tool, .. } if tool == name));
        if !known {
            self.tools.push(ToolDrift::Added {
                tool: name.to_owned(),
                findings: vec![shadowing_finding(name)],
            });
        }
    }

    /// Merges drift that was found by another comparison into the drift of the same tool.
    pub fn add(&mut self, more: Drift) {
        let known = self.tools.iter_mut().find_map(|known| match known {
            ToolDrift::Changed(drift) | ToolDrift::Renamed { drift, .. } => {
                (drift.tool == more.tool).then_some(drift)
            }
            ToolDrift::Added { .. } | ToolDrift::Removed { .. } => None,
        });
        match known {
            Some(known) => known.add(more),
            None if more.changes.is_empty() => {
                let said = more.results.map(|results| (more.tool, results));
                self.results.extend(said);
            }
            None => self.tools.push(ToolDrift::Changed(more)),
        }
    }
}

/// The drift of one tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolDrift {
    /// It is in both lists.
    Changed(Drift),
    /// It is new.
    Added {
        /// Its name.
        tool: String,
        /// The findings in its text.
        findings: Vec<TextFinding>,
    },
    /// It was removed.
    Removed {
        /// Its name.
        tool: String,
    },
    /// It is probably a renamed tool.
    Renamed {
        /// The old and the new name.
        rename: Rename,
        /// What else changed.
        drift: Drift,
    },
}

impl ToolDrift {
    /// The current name of the tool, or its last name if it was removed.
    #[must_use]
    pub fn tool(&self) -> &str {
        match self {
            Self::Changed(drift) => &drift.tool,
            Self::Added { tool, .. } | Self::Removed { tool } => tool,
            Self::Renamed { rename, .. } => &rename.to,
        }
    }

    /// The most severe class of what happened.
    #[must_use]
    pub fn class(&self) -> ChangeClass {
        match self {
            Self::Changed(drift) => drift.class().unwrap_or(ChangeClass::Equivalent),
            Self::Added { findings, .. } if findings.iter().any(is_suspicious) => {
                ChangeClass::Trust
            }
            Self::Added { .. } => ChangeClass::Added,
            // A caller of the removed tool is now refused.
            Self::Removed { .. } => ChangeClass::Breaking,
            Self::Renamed { drift, .. } => drift
                .class()
                .unwrap_or(ChangeClass::Breaking)
                .max(ChangeClass::Breaking),
        }
    }

    /// The kind of drift, in the terms of the toolwatch document.
    #[must_use]
    pub fn change_type(&self) -> ToolwatchChangeType {
        match self {
            Self::Changed(drift) => drift.change_type().unwrap_or(ToolwatchChangeType::Schema),
            Self::Added { .. } | Self::Removed { .. } | Self::Renamed { .. } => {
                ToolwatchChangeType::Schema
            }
        }
    }

    /// Whether any change is of this class.
    #[must_use]
    pub fn has_class(&self, class: ChangeClass) -> bool {
        let inner = match self {
            Self::Changed(drift) | Self::Renamed { drift, .. } => drift.has_class(class),
            Self::Added { .. } => class == ChangeClass::Added,
            Self::Removed { .. } => false,
        };
        inner || self.class() == class
    }
}

/// Compares two lists of tools. Equal names are the same tool; the others may be renames.
#[must_use]
pub fn compare_lists(
    old: &[ObservedDefinition<'_>],
    new: &[ObservedDefinition<'_>],
    options: &Options,
    calls: &[RecordedCall],
) -> ListDrift {
    compare_lists_in_server(old, new, options, calls, &BTreeSet::new())
}

/// Compares two lists of tools, given the names of the server's other tools. Text that starts to name
/// one of them is a change of trust.
#[must_use]
pub fn compare_lists_in_server(
    old: &[ObservedDefinition<'_>],
    new: &[ObservedDefinition<'_>],
    options: &Options,
    calls: &[RecordedCall],
    others: &BTreeSet<&str>,
) -> ListDrift {
    let all = old.iter().chain(new).map(|tool| tool.name);
    let all: BTreeSet<&str> = all.chain(others.iter().copied()).collect();
    let compare =
        |before: &ObservedDefinition<'_>, tool: &ObservedDefinition<'_>, calls: &[Value]| {
            compare_in_server(before, tool, options, calls, &all)
        };
    let calls_of = |name: &str| -> Vec<Value> {
        let matching = calls.iter().filter(|call| {
            let tool = call.tool.as_deref();
            tool == Some(name) || (tool.is_none() && old.len() == 1)
        });
        matching.map(|call| call.arguments.clone()).collect()
    };
    let mut waiting: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, tool) in old.iter().enumerate().rev() {
        waiting.entry(tool.name).or_default().push(index);
    }
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in new {
        *names.entry(tool.name).or_default() += 1;
    }
    let mut partner: Vec<Option<usize>> = Vec::with_capacity(new.len());
    for tool in new {
        partner.push(waiting.get_mut(tool.name).and_then(Vec::pop));
    }
    let mut gone: Vec<usize> = waiting.into_values().flatten().collect();
    gone.sort_unstable();
    let come = new
        .iter()
        .zip(&partner)
        .filter(|(_, partner)| partner.is_none());
    let come: Vec<RenameCandidate<'_>> = come.map(|(tool, _)| candidate(tool)).collect();
    let left: Vec<RenameCandidate<'_>> = gone
        .iter()
        .filter_map(|index| old.get(*index))
        .map(candidate)
        .collect();
    let renames = match_renames(&left, &come);
    let mut drift = ListDrift::default();
    for (tool, partner) in new.iter().zip(partner) {
        let mut renames = renames.iter().filter(|_| partner.is_none());
        let rename = renames.find(|rename| rename.to == tool.name);
        let renamed_from = rename.and_then(|rename| {
            let index = gone
                .iter()
                .position(|index| old.get(*index).is_some_and(|it| it.name == rename.from))?;
            Some((rename, gone.remove(index)))
        });
        match (partner.and_then(|index| old.get(index)), renamed_from) {
            (Some(before), _) => {
                let mut changed = compare(before, tool, &calls_of(before.name));
                mark_same_operation(&mut changed.changes, tool.name, old, new);
                let rejects = changed
                    .input
                    .as_ref()
                    .and_then(|input| input.replay.as_ref());
                if changed.changes.is_empty() && rejects.is_none_or(|it| it.rejected == 0) {
                    drift.unchanged += 1;
                } else {
                    drift.tools.push(ToolDrift::Changed(changed));
                }
            }
            (None, Some((rename, index))) => {
                if let Some(before) = old.get(index) {
                    drift.tools.push(ToolDrift::Renamed {
                        rename: Rename::for_tool(rename),
                        drift: compare(before, tool, &calls_of(before.name)),
                    });
                }
            }
            (None, None) => {
                let mut findings = text::scan(tool.definition);
                if names.get(tool.name).is_some_and(|count| *count > 1) {
                    findings.push(shadowing_finding(tool.name));
                }
                drift.tools.push(ToolDrift::Added {
                    tool: tool.name.to_owned(),
                    findings,
                });
            }
        }
    }
    let removed = gone.into_iter().filter_map(|index| old.get(index));
    // One of two tools with the same name was removed; calls still find the other.
    let removed = removed.filter(|tool| !names.contains_key(tool.name));
    drift.tools.extend(removed.map(|tool| ToolDrift::Removed {
        tool: tool.name.to_owned(),
    }));
    drift
}

/// The finding for a name that another tool of the list already has.
#[must_use]
pub fn shadowing_finding(name: &str) -> TextFinding {
    TextFinding {
        detector: Detector::CollidingName,
        weight: Weight::Medium,
        pointer: Pointer::of(["name"]),
        message: format!("the list has another tool called `{}`", name.escape_debug()),
        decoded: None,
    }
}

fn candidate<'d>(tool: &ObservedDefinition<'d>) -> RenameCandidate<'d> {
    let description = tool.facet(Facet::Description).and_then(Value::as_str);
    RenameCandidate {
        name: tool.name,
        schema: tool.facet(Facet::Input),
        description: description.unwrap_or_default(),
    }
}
