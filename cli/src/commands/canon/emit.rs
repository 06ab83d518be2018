use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use toolwarden_canon::{
    Edit, EditKind, Emission, EmitTarget, Emitter, LossKind, NotPortable, OriginalSchemas, Warning,
};
use toolwarden_model::{Format, Tool};

use super::canonicalize::announce;
use super::rewrite_check::RewriteCheck;
use crate::args::{DeniedLoss, DocumentFormat, DraftArg, EmitArgs};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::{
    WarningEntry, edit_line, print_status, print_unread_members, print_warnings, warning_entries,
};
use crate::error::CliError;
use crate::input::{InputTool, each_tool};
use crate::output::{DefinitionWriter, ListDocumentWriter, OutputFile};
use crate::style;

#[derive(Serialize)]
struct EmitEntry<'t> {
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
struct EditExample {
    count: usize,
    tool: String,
    reason: String,
}

/// What emitting all tools has come to.
#[derive(Default)]
struct EmissionSummary {
    /// Kinds of edits, by what happened where.
    kinds: BTreeMap<(u8, String), EditExample>,
    renamed: BTreeMap<String, String>,
    semantic: usize,
    metadata: usize,
    refused: usize,
    unaccepted: usize,
    warned: bool,
}

pub(super) fn run(args: &EmitArgs) -> Result<CommandOutcome, CliError> {
    let target = match (args.target, args.draft) {
        (EmitTarget::JsonSchema, Some(DraftArg::Draft201909)) => EmitTarget::JsonSchema201909,
        (EmitTarget::JsonSchema, Some(DraftArg::Draft202012)) => EmitTarget::JsonSchema202012,
        (target, _) => target,
    };
    let mut emitter = CheckedEmitter {
        emitter: Emitter::new(target),
        target,
        rewrites: RewriteCheck::new(),
    };
    let mut account = EmissionSummary::default();
    let out = OutputFile::open(args.output.output.as_deref())?;
    let count = if args.output.format == DocumentFormat::Json {
        let head = [("target", format!("\"{target}\""))];
        let mut envelope =
            ListDocumentWriter::open(out, "toolwarden/canon/emit/v1", &head, "tools")?;
        let facts = each_tool(&args.input, |read| {
            let tool = read.canonicalized.tool.clone();
            let emission = emitter.try_emit(&read, tool)?;
            account.add(&read, &emission);
            envelope.push(&entry(&read, &emission))
        })?;
        print_unread_members(&facts);
        let names = serde_json::to_string_pretty(&account.renamed).unwrap_or_default();
        envelope.finish(&[("names", names)])?
    } else {
        let mut documents = DefinitionWriter::new(out, args.output.format);
        let mut told = 0;
        let facts = each_tool(&args.input, |mut read| {
            print_warnings(&read);
            let tool = std::mem::replace(&mut read.canonicalized.tool, Tool::new(Format::Raw));
            let emission = emitter.try_emit(&read, tool)?;
            account.add(&read, &emission);
            match &emission {
                Ok(emission) => {
                    if args.verbose || read.is_only {
                        print_edits(emission, read.is_only);
                        told += 1;
                    }
                    documents.push(&emission.value, read.is_only)
                }
                Err(refused) => {
                    print_status(&format!(
                        "{0}refused{0:#}: {1}",
                        style::ERROR,
                        style::escape_controls(refused)
                    ));
                    Ok(())
                }
            }
        })?;
        print_unread_members(&facts);
        let count = documents.finish()?;
        // The only tool of a list is not reported as it is emitted, so report it here.
        if told < count {
            account.print_summary();
        }
        print_undecided(emitter.rewrites.undecided());
        count
    };
    if count == 0 && account.refused == 0 {
        print_status("Warning: no tool definition found.");
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
    target: EmitTarget,
    rewrites: RewriteCheck,
}

impl CheckedEmitter {
    /// Emits a tool, or says why it cannot be done. An emission that changes more than it reports is an
    /// error of ours, and ends the command.
    fn try_emit(
        &mut self,
        read: &InputTool<'_>,
        tool: Tool,
    ) -> Result<Result<Emission, String>, CliError> {
        let no_definition = |warning: &&Warning| matches!(warning, Warning::NotAnObject { .. });
        let place = || {
            format!(
                "{} {}",
                read.location.file_and_line(),
                read.canonicalized.pointer
            )
        };
        if let Some(warning) = read.canonicalized.warnings.iter().find(no_definition) {
            return Ok(Err(format!("{}: {warning}", place())));
        }
        let originals = (!tool.format.is_hosted()).then(|| OriginalSchemas::of(&tool));
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
pub(super) fn print_undecided(tools: usize) {
    if tools > 0 {
        let what = if tools == 1 { "tool" } else { "tools" };
        print_status(&format!(
            "{0}not checked{0:#}: the rewritten schema of {tools} {what} could not be compared with the original",
            style::DIM
        ));
    }
}

/// The toolcanon document's word for a target, where it has one of its own.
const fn documented_word(target: EmitTarget) -> &'static str {
    match target {
        EmitTarget::OpenaiChat => "openai",
        target => target.id(),
    }
}

fn entry<'t>(read: &'t InputTool<'_>, emission: &'t Result<Emission, String>) -> EmitEntry<'t> {
    let edits = |kept: fn(&Edit) -> bool| {
        let edits = emission
            .iter()
            .flat_map(|emission| &emission.edits)
            .filter(move |edit| kept(edit));
        edits.map(edit_entry).collect()
    };
    EmitEntry {
        file: read.location.file.display().to_string(),
        pointer: read.canonicalized.pointer.as_str(),
        name: &read.canonicalized.tool.name,
        emitted_name: emission
            .as_ref()
            .ok()
            .map(|emission| emission.name.emitted.as_str()),
        value: emission.as_ref().ok().map(|emission| &emission.value),
        losses: edits(|edit| edit.kind != EditKind::Change),
        changes: edits(|edit| edit.kind == EditKind::Change),
        unaccepted: emission
            .iter()
            .flat_map(|emission| &emission.findings)
            .map(|it| UnacceptedEntry {
                path: it.pointer.as_str(),
                rule: it.rule,
                message: &it.message,
            })
            .collect(),
        refused: emission.as_ref().err().cloned(),
        warnings: warning_entries(&read.canonicalized.warnings),
    }
}

fn edit_entry(edit: &Edit) -> EditEntry<'_> {
    let severity = match edit.kind {
        EditKind::Loss(severity) => Some(severity.as_str()),
        EditKind::Change => None,
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
fn print_edits(emission: &Emission, alone: bool) {
    let left = emission.findings.iter().map(|it| {
        let (error, path) = (style::ERROR, style::escape_controls(it.pointer.as_str()));
        format!(
            "{error}still not accepted{error:#} {path}: {}",
            style::escape_controls(&it.message)
        )
    });
    for line in emission.edits.iter().map(edit_line).chain(left) {
        if alone {
            print_status(&line);
        } else {
            print_status(&format!(
                "{}: {line}",
                style::escape_controls(&emission.name.original)
            ));
        }
    }
}

impl EmissionSummary {
    fn add(&mut self, read: &InputTool<'_>, emission: &Result<Emission, String>) {
        self.warned |= !read.canonicalized.warnings.is_empty();
        let Ok(emission) = emission else {
            self.refused += 1;
            return;
        };
        let mut kinds = BTreeMap::new();
        for edit in &emission.edits {
            let (rank, word) = match edit.kind {
                EditKind::Loss(LossKind::Semantic) => (0, "lost (semantic)"),
                EditKind::Loss(LossKind::Metadata) => (1, "lost (metadata)"),
                EditKind::Change => (2, "changed"),
            };
            kinds
                .entry((rank, format!("{word} {}", general_path(edit))))
                .or_insert(&edit.reason);
        }
        for (kind, reason) in kinds {
            let example = self.kinds.entry(kind).or_insert_with(|| EditExample {
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
                .any(|edit| edit.kind == EditKind::Loss(severity))
        };
        self.unaccepted += usize::from(!emission.findings.is_empty());
        self.semantic += usize::from(lost(LossKind::Semantic));
        self.metadata += usize::from(lost(LossKind::Metadata));
        if emission.name.emitted != emission.name.original {
            self.renamed.insert(
                emission.name.emitted.clone(),
                emission.name.original.clone(),
            );
        }
    }

    /// Tells what was lost and changed over all tools, each kind once.
    fn print_summary(&self) {
        for (
            (rank, what),
            EditExample {
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
                style::escape_controls(what),
                style::escape_controls(tool),
                style::escape_controls(reason),
            );
            print_status(&format!(
                "{style}{what}{style:#} in {tools}, e.g. {tool}: {reason}"
            ));
        }
        if self.unaccepted > 0 {
            let (error, count) = (style::ERROR, self.unaccepted);
            print_status(&format!(
                "{error}still not accepted{error:#}: {count} of the emitted tools; --verbose says why"
            ));
        }
        for (emitted, original) in &self.renamed {
            print_status(&format!(
                "renamed {} to {}",
                style::escape_controls(original),
                style::escape_controls(emitted)
            ));
        }
    }

    fn verdict(&self, args: &EmitArgs) -> CommandOutcome {
        let denied = match args.deny_loss {
            Some(DeniedLoss::Any) => self.semantic + self.metadata > 0,
            Some(DeniedLoss::Semantic) => self.semantic > 0,
            None => false,
        };
        if denied || self.refused > 0 || (args.strict && (self.warned || self.unaccepted > 0)) {
            CommandOutcome::Finding
        } else {
            CommandOutcome::Pass
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
