//! What schemas, leaks and tools that were not offered say against a side, in common words.

use super::declared::Declared;
use super::mark::Mark;
use super::rate::Rate;
use super::snapshot::{Snapshot, ToolContract};

/// Something that is wrong in itself, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) tool: Option<String>,
    pub(super) field: &'static str,
    pub(super) pointer: String,
    /// What it is, for a reader.
    pub(super) what: String,
    pub(super) rate: Rate,
}

impl Wrong {
    /// Whether another is about the same thing.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let key = |it: &Self| {
            (
                it.tool.clone(),
                it.field,
                it.pointer.clone(),
                keyword(&it.what),
            )
        };
        key(self) == key(other)
    }
}

/// What stands before the colon does not depend on which message was kept.
pub(super) fn keyword(what: &str) -> String {
    what.split(':').next().unwrap_or_default().to_owned()
}

/// What the schema says against calls of a tool.
pub(super) fn faults(name: &str, tool: &ToolContract) -> Vec<Wrong> {
    let faults = tool.faults.iter().map(|fault| Wrong {
        tool: Some(name.to_owned()),
        field: field(&fault.keyword),
        pointer: fault.pointer.clone(),
        what: format!("`{}`: {}", fault.keyword, fault.message),
        rate: Rate::new(fault.calls.min(tool.calls), tool.calls),
    });
    faults.collect()
}

/// The arguments that the schema does not name, where it does not refuse them itself.
pub(super) fn extra_keys(name: &str, tool: &ToolContract) -> Vec<Wrong> {
    let told = tool
        .faults
        .iter()
        .any(|it| field(&it.keyword) == "extra_key");
    if told {
        return Vec::new();
    }
    all_extra_keys(name, tool)
}

fn all_extra_keys(name: &str, tool: &ToolContract) -> Vec<Wrong> {
    let paths = tool.arguments.paths.iter();
    let extra = paths.filter(|(_, path)| path.declared == Declared::Extra);
    let extra = extra.map(|(pointer, path)| Wrong {
        tool: Some(name.to_owned()),
        field: "extra_key",
        pointer: pointer.clone(),
        what: "the schema does not name this argument".to_owned(),
        rate: path.present,
    });
    extra.collect()
}

/// The tools that were called without being offered.
pub(super) fn undeclared(snapshot: &Snapshot) -> Vec<Wrong> {
    let tools = snapshot.undeclared.iter().map(|(name, tool)| Wrong {
        tool: Some(name.clone()),
        field: "undeclared_tool",
        pointer: String::new(),
        what: "the model called a tool that was not offered".to_owned(),
        rate: tool.trials,
    });
    tools.collect()
}

/// The markup that came through as text.
pub(super) fn leaks(snapshot: &Snapshot) -> Vec<Wrong> {
    let leaks = snapshot.replies.leaks.iter().map(|leak| Wrong {
        tool: None,
        field: "leak",
        pointer: format!("/replies/leaks/{}/{}", leak.family, leak.place),
        what: format!(
            "markup of {} came through in the {}: `{}`",
            leak.family, leak.place, leak.sentinel
        ),
        rate: leak.replies,
    });
    leaks.collect()
}

/// What a side shows of one thing that is wrong.
pub(super) fn wrong(mark: &Mark, snapshot: &Snapshot) -> Option<Wrong> {
    let measured = snapshot.trials.measured;
    match mark {
        Mark::Fault {
            tool,
            keyword: word,
            pointer,
        } => {
            let mut found = faults(tool, snapshot.tools.get(tool)?).into_iter();
            let word = format!("`{word}`");
            found.find(|it| it.pointer == *pointer && keyword(&it.what) == word)
        }
        Mark::ExtraKey { tool, pointer } => {
            let mut found = all_extra_keys(tool, snapshot.tools.get(tool)?).into_iter();
            found.find(|it| it.pointer == *pointer)
        }
        Mark::UndeclaredTool(tool) => {
            let mut found = undeclared(snapshot).into_iter();
            found.find(|it| it.tool.as_ref() == Some(tool))
        }
        Mark::LeakOf { family, place } => {
            let pointer = format!("/replies/leaks/{family}/{place}");
            leaks(snapshot).into_iter().find(|it| it.pointer == pointer)
        }
        Mark::Forbidden(tool) => Some(Wrong {
            tool: Some(tool.clone()),
            field: "forbidden_call",
            pointer: String::new(),
            what: "the model called a tool that the case forbids".to_owned(),
            rate: Rate::new(0, measured),
        }),
        Mark::Broken(rule) => {
            let note = snapshot.replies.notes.get(rule)?;
            Some(Wrong {
                tool: None,
                field: "broken_call",
                pointer: format!("/replies/notes/{rule}"),
                what: format!("something sent as a call is none: {}", note.message),
                rate: note.replies,
            })
        }
        _ => None,
    }
}

fn field(keyword: &str) -> &'static str {
    match keyword {
        "required" => "missing_required",
        "type" => "wrong_type",
        "additionalProperties" | "unevaluatedProperties" => "extra_key",
        "arguments" => "unreadable_arguments",
        _ => "schema_violation",
    }
}
