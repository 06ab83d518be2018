use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolwarden_model::json::Pointer;

use crate::call::RecordedCall;
use crate::change::{ChangeType, Class};
use crate::compare::{Drift, Options, compare_among};
use crate::layout::{Facet, Observed};
use crate::rename::{Candidate, Rename, matches};
use crate::shape::ShapeDrift;
use crate::text::{self, Detector, Finding, Weight, is_suspicious};

/// What changed between two lists of tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListDrift {
    /// Every tool that drifted, in the order of the new list, then those that are gone.
    pub tools: Vec<ToolDrift>,
    /// The tools that are in both lists and did not change.
    pub unchanged: usize,
    /// What the results of tools that did not drift still say, by tool.
    pub results: Vec<(String, ShapeDrift)>,
}

impl ListDrift {
    /// Takes what changed in a tool for unknown where it seems harmless: nobody knows what it means.
    pub fn doubt(&mut self, tool: &str) {
        for known in &mut self.tools {
            if let ToolDrift::Changed(drift) = known
                && drift.tool == tool
            {
                drift.doubt();
            }
        }
    }

    /// Adds drift that was found otherwise to what is known of its tool.
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

/// What became of one tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolDrift {
    /// It is in both lists.
    Changed(Drift),
    /// It is new; with what its text carries.
    Added {
        /// Its name.
        tool: String,
        /// What its text carries.
        findings: Vec<Finding>,
    },
    /// It is gone.
    Removed {
        /// Its name.
        tool: String,
    },
    /// It is likely one that went by another name.
    Renamed {
        /// The names.
        rename: Rename,
        /// What else changed.
        drift: Drift,
    },
}

impl ToolDrift {
    /// The name the tool has now, or had.
    #[must_use]
    pub fn tool(&self) -> &str {
        match self {
            Self::Changed(drift) => &drift.tool,
            Self::Added { tool, .. } | Self::Removed { tool } => tool,
            Self::Renamed { rename, .. } => &rename.to,
        }
    }

    /// The gravest class of what happened.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Changed(drift) => drift.class().unwrap_or(Class::Equivalent),
            Self::Added { findings, .. } if findings.iter().any(is_suspicious) => Class::Trust,
            Self::Added { .. } => Class::Added,
            // Whoever calls it is refused now.
            Self::Removed { .. } => Class::Breaking,
            Self::Renamed { drift, .. } => drift
                .class()
                .unwrap_or(Class::Breaking)
                .max(Class::Breaking),
        }
    }

    /// The kind of drift, in the words of the toolwatch document.
    #[must_use]
    pub fn change_type(&self) -> ChangeType {
        match self {
            Self::Changed(drift) => drift.change_type().unwrap_or(ChangeType::Schema),
            Self::Added { .. } | Self::Removed { .. } | Self::Renamed { .. } => ChangeType::Schema,
        }
    }

    /// Whether something of a class happened.
    #[must_use]
    pub fn is(&self, class: Class) -> bool {
        let inner = match self {
            Self::Changed(drift) | Self::Renamed { drift, .. } => drift.is(class),
            Self::Added { .. } => class == Class::Added,
            Self::Removed { .. } => false,
        };
        inner || self.class() == class
    }
}

/// Compares two lists of tools: equal names are one tool, the others may have been renamed.
#[must_use]
pub fn compare_lists(
    old: &[Observed<'_>],
    new: &[Observed<'_>],
    options: &Options,
    calls: &[RecordedCall],
) -> ListDrift {
    compare_lists_among(old, new, options, calls, &BTreeSet::new())
}

/// Compares two lists of tools beside other tools of the server, of which only the names matter: text
/// that begins to name one of them is a matter of trust.
#[must_use]
pub fn compare_lists_among(
    old: &[Observed<'_>],
    new: &[Observed<'_>],
    options: &Options,
    calls: &[RecordedCall],
    others: &BTreeSet<&str>,
) -> ListDrift {
    let all = old.iter().chain(new).map(|tool| tool.name);
    let all: BTreeSet<&str> = all.chain(others.iter().copied()).collect();
    let compare = |before: &Observed<'_>, tool: &Observed<'_>, calls: &[Value]| {
        compare_among(before, tool, options, calls, &all)
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
    let come: Vec<Candidate<'_>> = come.map(|(tool, _)| candidate(tool)).collect();
    let left: Vec<Candidate<'_>> = gone
        .iter()
        .filter_map(|index| old.get(*index))
        .map(candidate)
        .collect();
    let renames = matches(&left, &come);
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
                let changed = compare(before, tool, &calls_of(before.name));
                let rejects = changed
                    .input
                    .as_ref()
                    .and_then(|input| input.replayed.as_ref());
                if changed.changes.is_empty() && rejects.is_none_or(|it| it.rejected == 0) {
                    drift.unchanged += 1;
                } else {
                    drift.tools.push(ToolDrift::Changed(changed));
                }
            }
            (None, Some((rename, index))) => {
                if let Some(before) = old.get(index) {
                    drift.tools.push(ToolDrift::Renamed {
                        rename: Rename::of_tool(rename),
                        drift: compare(before, tool, &calls_of(before.name)),
                    });
                }
            }
            (None, None) => {
                let mut findings = text::scan(tool.definition);
                if names.get(tool.name).is_some_and(|count| *count > 1) {
                    findings.push(shadowing(tool.name));
                }
                drift.tools.push(ToolDrift::Added {
                    tool: tool.name.to_owned(),
                    findings,
                });
            }
        }
    }
    let removed = gone.into_iter().filter_map(|index| old.get(index));
    // One of two tools of a name went: calls still find the other.
    let removed = removed.filter(|tool| !names.contains_key(tool.name));
    drift.tools.extend(removed.map(|tool| ToolDrift::Removed {
        tool: tool.name.to_owned(),
    }));
    drift
}

/// The finding for a name that another tool of the list has already.
#[must_use]
pub fn shadowing(name: &str) -> Finding {
    Finding {
        detector: Detector::CollidingName,
        weight: Weight::Medium,
        pointer: Pointer::of(["name"]),
        message: format!("the list has another tool called `{}`", name.escape_debug()),
        decoded: None,
    }
}

fn candidate<'d>(tool: &Observed<'d>) -> Candidate<'d> {
    let description = tool.facet(Facet::Description).and_then(Value::as_str);
    Candidate {
        name: tool.name,
        schema: tool.facet(Facet::Input),
        description: description.unwrap_or_default(),
    }
}
