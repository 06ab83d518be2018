//! The faults of a side in common terms: schema violations, leaks, and tools that were not offered.

use std::collections::BTreeSet;

use toolwarden_model::reply::TrialFailure;

use super::change::keyword;
use super::member_declaration::MemberDeclaration;
use super::rate::Rate;
use super::snapshot::{Snapshot, ToolContract};
use super::trial_mark::TrialMark;
use super::trial_rule::TrialRule;

/// What the rules of notes begin with that report a client which fails on a reply.
pub(super) const CLIENT_RULE_PREFIX: &str = "client-";

/// A fault and its rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Defect {
    pub(super) tool: Option<String>,
    pub(super) rule: TrialRule,
    pub(super) pointer: String,
    /// The description for a reader.
    pub(super) what: String,
    pub(super) rate: Rate,
}

impl Defect {
    /// Whether another defect is about the same thing.
    pub(super) fn is_same_defect(&self, other: &Self) -> bool {
        let key = |it: &Self| {
            (
                it.tool.clone(),
                it.rule.clone(),
                it.pointer.clone(),
                keyword(&it.what),
            )
        };
        key(self) == key(other)
    }
}

/// The schema violations in calls of a tool.
pub(super) fn schema_defects(name: &str, tool: &ToolContract) -> Vec<Defect> {
    let faults = tool.faults.iter().map(|fault| Defect {
        tool: Some(name.to_owned()),
        rule: fault_rule(&fault.keyword),
        pointer: fault.pointer.clone(),
        what: format!("`{}`: {}", fault.keyword, fault.message),
        rate: Rate::new(fault.calls.min(tool.calls), tool.calls),
    });
    faults.collect()
}

/// The arguments that the schema does not name, if the schema itself does not reject them.
pub(super) fn extra_key_defects(name: &str, tool: &ToolContract) -> Vec<Defect> {
    let told = tool
        .faults
        .iter()
        .any(|it| fault_rule(&it.keyword) == TrialRule::RejectedKey);
    if told {
        return Vec::new();
    }
    all_extra_keys(name, tool)
}

fn all_extra_keys(name: &str, tool: &ToolContract) -> Vec<Defect> {
    let paths = tool.arguments.paths.iter();
    let extra = paths.filter(|(_, path)| path.declared == MemberDeclaration::Extra);
    let extra = extra.map(|(pointer, path)| Defect {
        tool: Some(name.to_owned()),
        rule: TrialRule::ExtraKey,
        pointer: pointer.clone(),
        what: "the schema does not name this argument".to_owned(),
        rate: path.present,
    });
    extra.collect()
}

/// The tools that were called without being offered.
pub(super) fn undeclared_tool_defects(snapshot: &Snapshot) -> Vec<Defect> {
    let tools = snapshot.undeclared.iter().map(|(name, tool)| Defect {
        tool: Some(name.clone()),
        rule: TrialRule::UndeclaredTool,
        pointer: String::new(),
        what: "the model called a tool that was not offered".to_owned(),
        rate: tool.trials,
    });
    tools.collect()
}

/// The markup that leaked into text.
pub(super) fn leak_defects(snapshot: &Snapshot) -> Vec<Defect> {
    let leaks = snapshot.replies.leaks.iter().map(|leak| Defect {
        tool: None,
        rule: TrialRule::Leak,
        pointer: format!("/replies/leaks/{}/{}", leak.family, leak.place),
        what: format!(
            "markup of {} leaked into the {}: `{}`",
            leak.family, leak.place, leak.sentinel
        ),
        rate: leak.replies,
    });
    leaks.collect()
}

/// The calls of tools that a case forbids, of the trials of such cases.
pub(super) fn forbidden_call_defects(snapshot: &Snapshot) -> Vec<Defect> {
    let mut called: BTreeSet<&String> = BTreeSet::new();
    for outcome in snapshot.cases.values().flat_map(|it| &it.outcomes) {
        called.extend(outcome.marks.iter().filter_map(|mark| match mark {
            TrialMark::Forbidden(tool) => Some(tool),
            _ => None,
        }));
    }
    let defects = called.into_iter().map(|tool| {
        let mut rate = Rate::default();
        for case in snapshot.cases.values().filter(|it| it.forbids(tool)) {
            for outcome in &case.outcomes {
                let is_called = outcome.marks.contains(&TrialMark::Forbidden(tool.clone()));
                let hits = if is_called { outcome.trials } else { 0 };
                rate.add(Rate::new(hits, outcome.trials));
            }
        }
        Defect {
            tool: Some(tool.clone()),
            rule: TrialRule::ForbiddenCall,
            pointer: String::new(),
            what: "the model called a tool that the case forbids".to_owned(),
            rate,
        }
    });
    defects.collect()
}

/// What was sent as a call and is not one.
pub(super) fn broken_call_defects(snapshot: &Snapshot) -> Vec<Defect> {
    let marks = snapshot.cases.values().flat_map(|it| &it.outcomes);
    let marks: BTreeSet<&TrialMark> = marks.flat_map(|it| &it.marks).collect();
    let broken = marks.into_iter().filter_map(|mark| match mark {
        TrialMark::Broken(_) => defect_of_mark(mark, snapshot),
        _ => None,
    });
    broken.collect()
}

/// The requests that the provider refused because of the tools. They say nothing about the model, but
/// callers with these tools cannot use the provider.
pub(super) fn rejection_defect(snapshot: &Snapshot) -> Option<Defect> {
    let mut failures = snapshot.failures();
    let (_, rejected) = failures.find(|(it, _)| *it == TrialFailure::SchemaRejected)?;
    Some(Defect {
        tool: None,
        rule: TrialRule::ToolsRejected,
        pointer: "/trials/failures/schema_rejected".to_owned(),
        what: "the provider refused the tools: its dialect does not accept their schemas"
            .to_owned(),
        rate: Rate::new(rejected, snapshot.trials.planned),
    })
}

/// The clients that fail on replies.
fn client_defects(snapshot: &Snapshot) -> Vec<Defect> {
    let notes = snapshot.replies.notes.iter();
    let clients = notes.filter(|(rule, _)| rule.starts_with(CLIENT_RULE_PREFIX));
    let defects = clients.map(|(rule, note)| Defect {
        tool: None,
        rule: TrialRule::ClientBreak,
        pointer: format!("/replies/notes/{rule}"),
        what: note.message.clone(),
        rate: note.replies,
    });
    defects.collect()
}

/// The occurrences of one fault on one side.
pub(super) fn defect_of_mark(mark: &TrialMark, snapshot: &Snapshot) -> Option<Defect> {
    let measured = snapshot.trials.measured;
    match mark {
        TrialMark::Fault {
            tool,
            keyword: word,
            pointer,
        } => {
            let mut found = schema_defects(tool, snapshot.tools.get(tool)?).into_iter();
            let word = format!("`{word}`");
            found.find(|it| it.pointer == *pointer && keyword(&it.what) == word)
        }
        TrialMark::ExtraKey { tool, pointer } => {
            let mut found = all_extra_keys(tool, snapshot.tools.get(tool)?).into_iter();
            found.find(|it| it.pointer == *pointer)
        }
        TrialMark::UndeclaredTool(tool) => {
            let mut found = undeclared_tool_defects(snapshot).into_iter();
            found.find(|it| it.tool.as_ref() == Some(tool))
        }
        TrialMark::LeakOf { family, place } => {
            let pointer = format!("/replies/leaks/{family}/{place}");
            leak_defects(snapshot)
                .into_iter()
                .find(|it| it.pointer == pointer)
        }
        TrialMark::Forbidden(tool) => Some(Defect {
            tool: Some(tool.clone()),
            rule: TrialRule::ForbiddenCall,
            pointer: String::new(),
            what: "the model called a tool that the case forbids".to_owned(),
            rate: Rate::new(0, measured),
        }),
        TrialMark::Broken(rule) if rule.starts_with(CLIENT_RULE_PREFIX) => {
            let pointer = format!("/replies/notes/{rule}");
            let mut found = client_defects(snapshot).into_iter();
            found.find(|it| it.pointer == pointer)
        }
        TrialMark::Broken(rule) => {
            let note = snapshot.replies.notes.get(rule)?;
            Some(Defect {
                tool: None,
                rule: TrialRule::BrokenCall,
                pointer: format!("/replies/notes/{rule}"),
                what: format!("something sent as a call is not a call: {}", note.message),
                rate: note.replies,
            })
        }
        _ => None,
    }
}

fn fault_rule(keyword: &str) -> TrialRule {
    match keyword {
        "required" => TrialRule::MissingRequired,
        "type" => TrialRule::WrongType,
        "additionalProperties" | "unevaluatedProperties" => TrialRule::RejectedKey,
        "arguments" => TrialRule::UnreadableArguments,
        _ => TrialRule::SchemaViolation,
    }
}
