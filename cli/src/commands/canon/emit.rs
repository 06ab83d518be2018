use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use toolwarden_canon::{
    Edit, Emission, Emitter, Kind, NotPortable, Originals, Severity, Target, Warning,
};
use toolwarden_model::{Format, Tool};

use super::canonicalize::announce;
use super::rewrite_check::RewriteCheck;
use crate::args::{DeniedLoss, DocumentFormat, Draft, EmitArgs};
use crate::commands::talk::{WarningEntry, edit_line, say, warn, warning_entries};
use crate::error::CliError;
use crate::input::{ReadTool, each_tool};
use crate::output::{Documents, Envelope, Output, Verdict};
use crate::style;

#[derive(Serialize)]
struct Entry<'t> {
    file: String,
    pointer: &'t str,
    name: &'t str,
    emitted_name: Option<&'t str>,
    value: Option<&'t Value>,
    losses: Vec<EditEntry<'t>>,
    changes: Vec<EditEntry<'t>>,
    unaccepted: Vec<UnacceptedEntry<'t>>,
    refused: Option<String>,
    warnings: Vec<WarningEntry>,
}

/// What the target's dialect still does not take.
#[derive(Serialize)]
struct UnacceptedEntry<'t> {
    path: &'t str,
    rule: &'static str,
    message: &'t str,
}

#[derive(Serialize)]
struct EditEntry<'t> {
    path: &'t str,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'static str>,
    before: &'t Option<Value>,
    after: &'t Option<Value>,
    reason: &'t str,
}

/// How many tools had a kind of edit, and the first of them.
struct Example {
    count: usize,
    tool: String,
    reason: String,
}

/// What emitting all tools has come to.
#[derive(Default)]
struct Account {
    /// Kinds of edits, by what happened where.
    kinds: BTreeMap<(u8, String), Example>,
    renamed: BTreeMap<String, String>,
    semantic: usize,
    metadata: usize,
    refused: usize,
    unaccepted: usize,
    warned: bool,
}

pub(super) fn run(args: &EmitArgs) -> Result<Verdict, CliError> {
    let target = match (args.target, args.draft) {
        (Target::JsonSchema, Some(Draft::Draft201909)) => Target::JsonSchema201909,
        (Target::JsonSchema, Some(Draft::Draft202012)) => Target::JsonSchema202012,
        (target, _) => target,
    };
    let mut emitter = CheckedEmitter {
        emitter: Emitter::new(target),
        target,
        rewrites: RewriteCheck::new(),
    };
    let mut account = Account::default();
    let out = Output::open(args.output.output.as_deref())?;
    let count = if args.output.format == DocumentFormat::Json {
        let head = [("target", format!("\"{target}\""))];
        let mut envelope = Envelope::open(out, "toolwarden/canon/emit/v1", &head, "tools")?;
        each_tool(&args.input, |read| {
            let tool = read.found.tool.clone();
            let emission = emitter.try_emit(&read, tool)?;
            account.add(&read, &emission);
            envelope.push(&entry(&read, &emission))
        })?;
        let names = serde_json::to_string_pretty(&account.renamed).unwrap_or_default();
        envelope.finish(&[("names", names)])?
    } else {
        let mut documents = Documents::new(out, args.output.format);
        let mut told = 0;
        each_tool(&args.input, |mut read| {
            warn(&read);
            let tool = std::mem::replace(&mut read.found.tool, Tool::new(Format::Raw));
            let emission = emitter.try_emit(&read, tool)?;
            account.add(&read, &emission);
            match &emission {
                Ok(emission) => {
                    if args.verbose || read.alone {
                        tell(emission, read.alone);
                        told += 1;
                    }
                    documents.push(&emission.value, read.alone)
                }
                Err(refused) => {
                    say(&format!(
                        "{0}refused{0:#}: {1}",
                        style::ERROR,
                        style::visible(refused)
                    ));
                    Ok(())
                }
            }
        })?;
        let count = documents.finish()?;
        // The only tool of a list is not reported as it is emitted, so report it here.
        if told < count {
            account.tell();
        }
        tell_undecided(emitter.rewrites.undecided());
        count
    };
    if count == 0 && account.refused == 0 {
        say("Warning: no tool definition found.");
    }
    if let Some(path) = &args.output.output {
        let what = if count == 1 {
            format!("Emitted {} tool", documented_word(args.target))
        } else {
            format!("{count} emitted {target} tools")
        };
        announce(&format!("{what} written to {}", path.display()))?;
    }
    Ok(account.verdict(args))
}

/// Emits tools and checks what became of their schemas.
struct CheckedEmitter {
    emitter: Emitter,
    target: Target,
    rewrites: RewriteCheck,
}

impl CheckedEmitter {
    /// Emits a tool, or says why it cannot be done. An emission that changes more than it reports is an
    /// error of ours, and ends the command.
    fn try_emit(
        &mut self,
        read: &ReadTool<'_>,
        tool: Tool,
    ) -> Result<Result<Emission, String>, CliError> {
        let no_definition = |warning: &&Warning| matches!(warning, Warning::NotAnObject { .. });
        let place = || format!("{} {}", read.place.file_and_line(), read.found.pointer);
        if let Some(warning) = read.found.warnings.iter().find(no_definition) {
            return Ok(Err(format!("{}: {warning}", place())));
        }
        let originals = (!tool.format.is_hosted()).then(|| Originals::of(&tool));
        let emission = match self.emitter.emit(tool) {
            Ok(emission) => emission,
            Err(refused @ NotPortable::Nameless { .. }) => {
                return Ok(Err(format!("{}: {refused}", place())));
            }
            Err(refused) => return Ok(Err(refused.to_string())),
        };
        if let Some(originals) = originals {
            let format = self.target.format();
            self.rewrites
                .check(originals, &emission.edits, &emission.value, format)
                .map_err(|source| CliError::Rewrite {
                    tool: emission.name.original.clone(),
                    source: Box::new(source),
                })?;
        }
        Ok(Ok(emission))
    }
}

/// Says of how many rewritten tools it is not proven that the account is complete.
pub(super) fn tell_undecided(tools: usize) {
    if tools > 0 {
        let what = if tools == 1 { "tool" } else { "tools" };
        say(&format!(
            "{0}not checked{0:#}: the rewritten schema of {tools} {what} could not be compared with the original",
            style::DIM
        ));
    }
}

/// The toolcanon document's word for a target, where it has one of its own.
const fn documented_word(target: Target) -> &'static str {
    match target {
        Target::OpenaiChat => "openai",
        target => target.id(),
    }
}

fn entry<'t>(read: &'t ReadTool<'_>, emission: &'t Result<Emission, String>) -> Entry<'t> {
    let edits = |kept: fn(&Edit) -> bool| {
        let edits = emission
            .iter()
            .flat_map(|emission| &emission.edits)
            .filter(move |edit| kept(edit));
        edits.map(edit_entry).collect()
    };
    Entry {
        file: read.place.file.display().to_string(),
        pointer: read.found.pointer.as_str(),
        name: &read.found.tool.name,
        emitted_name: emission
            .as_ref()
            .ok()
            .map(|emission| emission.name.emitted.as_str()),
        value: emission.as_ref().ok().map(|emission| &emission.value),
        losses: edits(|edit| edit.kind != Kind::Change),
        changes: edits(|edit| edit.kind == Kind::Change),
        unaccepted: emission
            .iter()
            .flat_map(|emission| &emission.unaccepted)
            .map(|it| UnacceptedEntry {
                path: it.pointer.as_str(),
                rule: it.rule,
                message: &it.message,
            })
            .collect(),
        refused: emission.as_ref().err().cloned(),
        warnings: warning_entries(&read.found.warnings),
    }
}

fn edit_entry(edit: &Edit) -> EditEntry<'_> {
    let severity = match edit.kind {
        Kind::Loss(severity) => Some(severity.as_str()),
        Kind::Change => None,
    };
    EditEntry {
        path: edit.path.as_str(),
        severity,
        before: &edit.before,
        after: &edit.after,
        reason: &edit.reason,
    }
}

/// Tells every edit of one tool.
fn tell(emission: &Emission, alone: bool) {
    let left = emission.unaccepted.iter().map(|it| {
        let (error, path) = (style::ERROR, style::visible(it.pointer.as_str()));
        format!(
            "{error}still not accepted{error:#} {path}: {}",
            style::visible(&it.message)
        )
    });
    for line in emission.edits.iter().map(edit_line).chain(left) {
        if alone {
            say(&line);
        } else {
            say(&format!(
                "{}: {line}",
                style::visible(&emission.name.original)
            ));
        }
    }
}

impl Account {
    fn add(&mut self, read: &ReadTool<'_>, emission: &Result<Emission, String>) {
        self.warned |= !read.found.warnings.is_empty();
        let Ok(emission) = emission else {
            self.refused += 1;
            return;
        };
        let mut kinds = BTreeMap::new();
        for edit in &emission.edits {
            let (rank, word) = match edit.kind {
                Kind::Loss(Severity::Semantic) => (0, "lost (semantic)"),
                Kind::Loss(Severity::Metadata) => (1, "lost (metadata)"),
                Kind::Change => (2, "changed"),
            };
            kinds
                .entry((rank, format!("{word} {}", general_path(edit))))
                .or_insert(&edit.reason);
        }
        for (kind, reason) in kinds {
            let example = self.kinds.entry(kind).or_insert_with(|| Example {
                count: 0,
                tool: emission.name.original.clone(),
                reason: reason.to_string(),
            });
            example.count += 1;
        }
        let lost = |severity| {
            emission
                .edits
                .iter()
                .any(|edit| edit.kind == Kind::Loss(severity))
        };
        self.unaccepted += usize::from(!emission.unaccepted.is_empty());
        self.semantic += usize::from(lost(Severity::Semantic));
        self.metadata += usize::from(lost(Severity::Metadata));
        if emission.name.emitted != emission.name.original {
            self.renamed.insert(
                emission.name.emitted.clone(),
                emission.name.original.clone(),
            );
        }
    }

    /// Tells what was lost and changed over all tools, each kind once.
    fn tell(&self) {
        for (
            (rank, what),
            Example {
                count,
                tool,
                reason,
            },
        ) in &self.kinds
        {
            let style = match rank {
                0 => style::ERROR,
                1 => style::WARNING,
                _ => style::DIM,
            };
            let tools = if *count == 1 {
                "1 tool".to_owned()
            } else {
                format!("{count} tools")
            };
            let (what, tool, reason) = (
                style::visible(what),
                style::visible(tool),
                style::visible(reason),
            );
            say(&format!(
                "{style}{what}{style:#} in {tools}, e.g. {tool}: {reason}"
            ));
        }
        if self.unaccepted > 0 {
            let (error, count) = (style::ERROR, self.unaccepted);
            say(&format!(
                "{error}still not accepted{error:#}: {count} of the emitted tools; --verbose says why"
            ));
        }
        for (emitted, original) in &self.renamed {
            say(&format!(
                "renamed {} to {}",
                style::visible(original),
                style::visible(emitted)
            ));
        }
    }

    fn verdict(&self, args: &EmitArgs) -> Verdict {
        let denied = match args.deny_loss {
            Some(DeniedLoss::Any) => self.semantic + self.metadata > 0,
            Some(DeniedLoss::Semantic) => self.semantic > 0,
            None => false,
        };
        if denied || self.refused > 0 || (args.strict && (self.warned || self.unaccepted > 0)) {
            Verdict::Finding
        } else {
            Verdict::Fine
        }
    }
}

/// The path of an edit with what differs from tool to tool left out.
fn general_path(edit: &Edit) -> String {
    let segments: Vec<String> = edit.path.segments().collect();
    match segments.as_slice() {
        [first, .., last] if segments.len() > 3 || (first == "inputs" && segments.len() > 2) => {
            format!("/{first}/…/{last}")
        }
        _ => edit.path.as_str().to_owned(),
    }
}
