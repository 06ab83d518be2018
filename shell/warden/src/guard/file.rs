use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thiserror::Error;
use toolwarden_canon::{Source, canonicalize};
use toolwarden_files::{FileError, as_document, as_text, read_text};
use toolwarden_guard::{
    DefinitionRef, Guard, Policy, PolicyError, PolicyWarning, Problem, ReadPolicy, ToolPolicy,
};
use toolwarden_model::document::Document;
use toolwarden_model::json::{Object, parse};
use toolwarden_model::{Fingerprint, Tool, closest};

use super::entry::object;

/// The largest policy or definition file that is read.
const MAX_BYTES: u64 = 256 << 20;

/// A policy that was read, checked and made ready.
#[derive(Debug)]
pub struct LoadedPolicy {
    /// The rules as they are written.
    pub policy: Policy,
    /// The rules, ready to decide.
    pub guard: Guard,
    /// What is legal and surprising.
    pub warnings: Vec<PolicyWarning>,
    /// The text with the place of everything.
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
    /// It says nothing.
    #[error(transparent)]
    File(#[from] FileError),
    /// There are mistakes in it.
    #[error("{}", listed(path, errors))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Every mistake.
        errors: Vec<PolicyError>,
    },
}

/// A policy under which everybody may call everything that servers have.
const OPEN: &str = "tools: {}\nprincipals: {\"*\": {groups: [\"*\"]}}\n";

impl LoadedPolicy {
    /// The policy where there is none: everybody may ask for every group and call every tool that
    /// requires no permission.
    ///
    /// # Errors
    /// None; the type is that of every other policy.
    pub fn open() -> Result<Self, PolicyFileError> {
        Self::of_text(OPEN.as_bytes(), Path::new("(open)"), Path::new(""))
    }

    /// Reads a policy file with the definitions it refers to, and checks everything in it.
    ///
    /// # Errors
    /// The file cannot be used; every mistake in it is told.
    pub fn read(path: &Path) -> Result<Self, PolicyFileError> {
        let text = read_text(path, MAX_BYTES)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::of_text(text.as_bytes(), path, folder)
    }

    /// As [`Self::read`], from a text; references start from the folder.
    ///
    /// # Errors
    /// The text cannot be used; every mistake in it is told.
    pub fn of_text(text: &[u8], path: &Path, folder: &Path) -> Result<Self, PolicyFileError> {
        let invalid = |errors| PolicyFileError::Invalid {
            path: path.to_owned(),
            errors,
        };
        let text = as_text(text, path)?;
        let document = as_document(text, path)?;
        let ReadPolicy {
            mut policy,
            warnings,
        } = Policy::read(&document).map_err(invalid)?;
        let mut definitions = Definitions::new(folder);
        let mut mistakes = definitions.resolve(&mut policy.tools);
        let (guard, faults) = Guard::new(policy.clone());
        mistakes.extend(faults.into_iter().map(|fault| PolicyError {
            pointer: fault.pointer,
            position: None,
            problem: Problem::Schema {
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
    /// What the log says of it.
    pub(super) fn detail(&self) -> Object {
        object(json!({
            "file": self.path.display().to_string(),
            "fingerprint": self.fingerprint.to_string(),
        }))
    }
}

/// Definition files that policies refer to, each read once.
struct Definitions<'f> {
    folder: &'f Path,
    read: BTreeMap<String, Result<Definition, String>>,
}

/// The tools of a file, and the text they were read from.
struct Definition {
    text: String,
    tools: Vec<Tool>,
}

impl<'f> Definitions<'f> {
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
                    problem: Problem::Definition { message },
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
            .or_insert_with(|| definitions(&folder.join(file)));
        let tools = &read.as_ref().map_err(Clone::clone)?.tools;
        let mut named = tools.iter().filter(|tool| tool.name == reference.tool);
        match (named.next(), named.next()) {
            (Some(tool), None) => Ok(tool),
            (Some(_), Some(_)) => Err(format!("{file} has several tools `{}`", reference.tool)),
            (None, _) => {
                let near = closest(&reference.tool, tools.iter().map(|it| it.name.as_str()));
                Err(format!("{file} has no tool `{}`{near}", reference.tool))
            }
        }
    }
}

fn definitions(path: &Path) -> Result<Definition, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = read_text(path, MAX_BYTES).map_err(|error| error.whole())?;
    let parsed = parse(&text).map_err(|error| told(&error))?;
    if let Some(twice) = parsed.duplicates.first() {
        // Whoever reads the other one validates other calls.
        return Err(told(&format!("{} is written twice", twice.pointer)));
    }
    let read = canonicalize(parsed.value, Source::Detect).map_err(|error| told(&error))?;
    Ok(Definition {
        text,
        tools: read.tools.into_iter().map(|found| found.tool).collect(),
    })
}

fn listed(path: &Path, errors: &[PolicyError]) -> String {
    let lines = errors.iter().map(|error| {
        let place = error.position.map_or(String::new(), |position| {
            format!(":{}:{}", position.line, position.column)
        });
        format!("{}{place}: {error}", path.display())
    });
    lines.collect::<Vec<_>>().join("\n")
}
