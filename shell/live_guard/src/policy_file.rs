use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thiserror::Error;
use toolwarden_canon::{FormatChoice, canonicalize};
use toolwarden_files::{FileError, decode_text, parse_document, read_text};
use toolwarden_guard::{
    DefinitionRef, Guard, Policy, PolicyError, PolicyProblem, PolicyWarning, PolicyWithWarnings,
    ToolPolicy,
};
use toolwarden_model::document::Document;
use toolwarden_model::json::{Object, parse};
use toolwarden_model::{Fingerprint, Tool, did_you_mean};

use super::log_entry::object;

/// The maximum size of a policy or definition file.
const MAX_BYTES: u64 = 256 << 20;

/// A policy that was read, checked and compiled.
#[derive(Debug)]
pub struct LoadedPolicy {
    /// The rules.
    pub policy: Policy,
    /// The compiled rules.
    pub guard: Guard,
    /// Warnings about legal but surprising parts.
    pub warnings: Vec<PolicyWarning>,
    /// The text, with the position of every value.
    pub document: Document,
    /// The digest of the text and of every file it refers to.
    pub fingerprint: Fingerprint,
    /// The file.
    pub path: PathBuf,
    /// The files it refers to.
    pub files: Vec<PathBuf>,
}

/// Why a policy file cannot be used.
#[derive(Debug, Error)]
pub enum PolicyFileError {
    /// The file cannot be read or parsed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The policy has mistakes.
    #[error("{}", list_errors(path, errors))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Every mistake.
        errors: Vec<PolicyError>,
    },
}

/// A policy under which every principal may call every tool that servers have.
const OPEN_POLICY: &str = "tools: {}\nprincipals: {\"*\": {groups: [\"*\"]}}\n";

impl LoadedPolicy {
    /// The policy when none is configured: every principal may request every group and call every tool that
    /// requires no permission.
    ///
    /// # Errors
    /// None; the type is that of every other policy.
    pub fn open() -> Result<Self, PolicyFileError> {
        Self::of_text(OPEN_POLICY.as_bytes(), Path::new("(open)"), Path::new(""))
    }

    /// Reads a policy file with the definitions it refers to, and checks everything in it.
    ///
    /// # Errors
    /// The file cannot be used; the error lists every mistake.
    pub fn read(path: &Path) -> Result<Self, PolicyFileError> {
        let text = read_text(path, MAX_BYTES)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::of_text(text.as_bytes(), path, folder)
    }

    /// Like [`Self::read`], from a text; references are relative to the folder.
    ///
    /// # Errors
    /// The text cannot be used; the error lists every mistake.
    pub fn of_text(text: &[u8], path: &Path, folder: &Path) -> Result<Self, PolicyFileError> {
        let invalid = |errors| PolicyFileError::Invalid {
            path: path.to_owned(),
            errors,
        };
        let text = decode_text(text, path)?;
        let document = parse_document(text, path)?;
        let PolicyWithWarnings {
            mut policy,
            warnings,
        } = Policy::read(&document).map_err(invalid)?;
        let mut definitions = DefinitionFiles::new(folder);
        let mut mistakes = definitions.resolve(&mut policy.tools);
        let (guard, faults) = Guard::new(policy.clone());
        mistakes.extend(faults.into_iter().map(|fault| PolicyError {
            pointer: fault.pointer,
            position: None,
            problem: PolicyProblem::Schema {
                message: fault.message,
            },
        }));
        if mistakes.is_empty() {
            return Ok(Self {
                policy,
                guard,
                warnings,
                document,
                fingerprint: definitions.fingerprint(text),
                path: path.to_owned(),
                files: definitions.files(),
            });
        }
        for mistake in &mut mistakes {
            mistake.position = Some(document.position(&mistake.pointer));
        }
        Err(invalid(mistakes))
    }
}

impl LoadedPolicy {
    /// The details for the log.
    pub(super) fn log_detail(&self) -> Object {
        object(json!({
            "file": self.path.display().to_string(),
            "fingerprint": self.fingerprint.to_string(),
        }))
    }
}

/// The definition files that policies refer to, each read once.
struct DefinitionFiles<'f> {
    folder: &'f Path,
    read: BTreeMap<String, Result<DefinitionFile, String>>,
}

/// The tools of a file, and the text they were read from.
struct DefinitionFile {
    text: String,
    tools: Vec<Tool>,
}

impl<'f> DefinitionFiles<'f> {
    const fn new(folder: &'f Path) -> Self {
        Self {
            folder,
            read: BTreeMap::new(),
        }
    }

    /// Gives every tool the schemas of the definition it refers to.
    fn resolve(&mut self, tools: &mut [ToolPolicy]) -> Vec<PolicyError> {
        let mut mistakes = Vec::new();
        for tool in tools {
            let Some(reference) = tool.definition.clone() else {
                continue;
            };
            match self.find(&reference) {
                Ok(found) => {
                    tool.input_schema = Value::Object(found.inputs.clone());
                    tool.output_schema = Value::Object(found.outputs.clone());
                    let version =
                        (found.version != Tool::DEFAULT_VERSION).then(|| found.version.to_string());
                    tool.version = tool.version.take().or(version);
                }
                Err(message) => mistakes.push(PolicyError {
                    pointer: reference.pointer,
                    position: None,
                    problem: PolicyProblem::Definition { message },
                }),
            }
        }
        mistakes
    }

    fn files(&self) -> Vec<PathBuf> {
        self.read.keys().map(|it| self.folder.join(it)).collect()
    }

    fn fingerprint(&self, policy: &str) -> Fingerprint {
        let files = self.read.iter().flat_map(|(name, read)| {
            let text = read.as_ref().map_or("", |it| it.text.as_str());
            [name.as_str(), text]
        });
        Fingerprint::tagged("toolwarden/policy", std::iter::once(policy).chain(files))
    }

    fn find(&mut self, reference: &DefinitionRef) -> Result<&Tool, String> {
        let folder = self.folder;
        let file = &reference.file;
        let read = self
            .read
            .entry(file.clone())
            .or_insert_with(|| read_definitions(&folder.join(file)));
        let tools = &read.as_ref().map_err(Clone::clone)?.tools;
        let mut named = tools.iter().filter(|tool| tool.name == reference.tool);
        match (named.next(), named.next()) {
            (Some(tool), None) => Ok(tool),
            (Some(_), Some(_)) => Err(format!("{file} has several tools `{}`", reference.tool)),
            (None, _) => {
                let near = did_you_mean(&reference.tool, tools.iter().map(|it| it.name.as_str()));
                Err(format!("{file} has no tool `{}`{near}", reference.tool))
            }
        }
    }
}

fn read_definitions(path: &Path) -> Result<DefinitionFile, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = read_text(path, MAX_BYTES).map_err(|error| error.full_message())?;
    let parsed = parse(&text).map_err(|error| told(&error))?;
    if let Some(twice) = parsed.duplicates.first() {
        // A parser that uses the other one would validate calls differently.
        return Err(told(&format!("{} is written twice", twice.pointer)));
    }
    let read = canonicalize(parsed.value, FormatChoice::Detect).map_err(|error| told(&error))?;
    Ok(DefinitionFile {
        text,
        tools: read.tools.into_iter().map(|found| found.tool).collect(),
    })
}

fn list_errors(path: &Path, errors: &[PolicyError]) -> String {
    let lines = errors.iter().map(|error| {
        let place = error.position.map_or(String::new(), |position| {
            format!(":{}:{}", position.line, position.column)
        });
        format!("{}{place}: {error}", path.display())
    });
    lines.collect::<Vec<_>>().join("\n")
}
