//! Finds the policy of a command.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolwarden_files::{parse_document, read_text};
use toolwarden_live_guard::LoadedPolicy;
use toolwarden_model::document::Document;
use toolwarden_model::json::{Pointer, Position};
use toolwarden_settings::{PolicySource, Settings};

use crate::args::PolicyArgs;
use crate::commands::gateway::load_settings;
use crate::commands::progress::print_status;
use crate::error::{CliError, GuardError};
use crate::style;

/// The default name of a policy file.
pub(super) const POLICY_FILE: &str = "policy.yaml";

/// The maximum size of a settings file that is read for its policy.
const MAX_BYTES: u64 = 64 << 20;

/// Where a policy is written.
#[derive(Debug)]
pub(super) enum PolicyLocation {
    /// In a file of its own; `-` is standard input.
    File(PathBuf),
    /// In settings, under `policy`.
    Settings {
        /// The settings file.
        path: PathBuf,
        /// The text of the policy.
        text: String,
        /// The settings, for positions.
        document: Document,
    },
}

impl PolicyLocation {
    /// The policy that `--policy` names, and otherwise `policy.yaml` or the policy of `toolwarden.yaml`.
    pub(super) fn find(args: &PolicyArgs) -> Result<Self, CliError> {
        if let Some(path) = &args.policy {
            let is_stdin = path.as_path() == Path::new("-");
            let document = if is_stdin { None } else { document(path) };
            if document.is_some_and(|it| Settings::is_settings(&it)) {
                let path = path.clone();
                return Err(GuardError::SettingsAsPolicy { path }.into());
            }
            return Ok(Self::File(path.clone()));
        }
        let (own, settings) = (Path::new(POLICY_FILE), Path::new(Settings::FILE));
        match (is_present(own), is_present(settings)) {
            (true, false) => Ok(Self::File(own.to_owned())),
            (true, true) => {
                match document(settings) {
                    // Earlier versions read the other file, which may say something else.
                    Some(other) if !Settings::is_settings(&other) => {
                        warn(
                            "policy.yaml is used; toolwarden.yaml is a policy too, and is ignored",
                        );
                    }
                    Some(other) => report_other_policy(&other),
                    None => {}
                }
                Ok(Self::File(own.to_owned()))
            }
            (false, true) => Self::in_settings_file(settings),
            (false, false) => Err(GuardError::NoPolicy.into()),
        }
    }

    /// The policy in `toolwarden.yaml`: the file is a policy, or settings that have or name one.
    fn in_settings_file(path: &Path) -> Result<Self, CliError> {
        // A file without a document has a mistake, which reading it as a policy reports.
        let Some(document) = document(path) else {
            return Ok(Self::File(path.to_owned()));
        };
        if !Settings::is_settings(&document) {
            warn(
                "toolwarden.yaml is a policy, but this name is for settings; rename it with \
                 `mv toolwarden.yaml policy.yaml`",
            );
            return Ok(Self::File(path.to_owned()));
        }
        match load_settings(path)?.settings.policy {
            PolicySource::Open => Err(GuardError::NoPolicyInSettings.into()),
            PolicySource::File(policy) => {
                let named = style::escape_controls(&policy.display().to_string());
                print_status(&format!("Using {named}, the policy of toolwarden.yaml"));
                Ok(Self::File(policy))
            }
            PolicySource::Inline(text) => {
                print_status("Using the policy in toolwarden.yaml");
                Ok(Self::Settings {
                    path: path.to_owned(),
                    text,
                    document,
                })
            }
        }
    }

    /// The file that contains the policy.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Settings { path, .. } => path,
        }
    }

    pub(super) fn is_stdin(&self) -> bool {
        self.path() == Path::new("-")
    }

    /// The position of a rule in the file that contains it.
    pub(super) fn position(&self, loaded: &LoadedPolicy, rule: &Pointer) -> Position {
        match self {
            Self::File(_) => loaded.document.position(rule),
            Self::Settings { document, .. } => {
                document.position(&Pointer::of(["policy"]).join(rule))
            }
        }
    }
}

/// Says that the gateway uses another policy than `policy.yaml`, if the settings beside it have or name one.
fn report_other_policy(settings: &Document) {
    let gateway = match settings.value.get("policy") {
        Some(Value::String(named)) if is_same_file(Path::new(named)) => return,
        Some(Value::String(named)) => {
            let named = style::escape_controls(named);
            format!("`toolwarden serve` uses {named}, which toolwarden.yaml names")
        }
        Some(Value::Object(_)) => {
            "`toolwarden serve` uses the policy in toolwarden.yaml".to_owned()
        }
        _ => return,
    };
    print_status(&format!("Using {POLICY_FILE}; {gateway}"));
}

/// Whether this path leads to `policy.yaml`.
fn is_same_file(path: &Path) -> bool {
    let resolve = |path: &Path| path.canonicalize().ok();
    path == Path::new(POLICY_FILE)
        || resolve(path).is_some_and(|it| Some(it) == resolve(Path::new(POLICY_FILE)))
}

/// Whether something has this name. A link to nowhere has it: reading it fails, and nothing else is read.
fn is_present(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

fn document(path: &Path) -> Option<Document> {
    let text = read_text(path, MAX_BYTES).ok()?;
    parse_document(&text, path).ok()
}

fn warn(text: &str) {
    let warning = style::WARNING;
    print_status(&format!("{warning}Warning{warning:#}: {text}"));
}
