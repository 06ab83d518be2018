//! Reads settings, and reports all mistakes at once.

mod alerts;
mod file_kind;
mod identity;
mod limits;
mod listen_limits;
mod misuse;
mod policy;
mod root;
mod server;
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolwarden_files::{parse_document, read_text};
use toolwarden_model::document::{DiagnosticKind, Document, DocumentReader};
use toolwarden_model::json::{Pointer, Position};

use super::error::MAX_BYTES;
use super::interpolate::{Interpolation, InterpolationContext, interpolate};
use super::keys::is_server_list;
use super::{
    PolicySource, Settings, SettingsError, SettingsMistake, SettingsProblem, SettingsWarning,
    mask_secrets, secrets,
};

/// Settings that were read and checked.
#[derive(Clone, Debug)]
pub struct LoadedSettings {
    /// The settings.
    pub settings: Settings,
    /// Warnings about legal but surprising parts.
    pub warnings: Vec<SettingsWarning>,
    /// The file.
    pub path: PathBuf,
    /// Every file that was read: the settings, the policy, and those referred to.
    pub files: Vec<PathBuf>,
    masked: Value,
    /// The positions of keys and elements, [`POSITION_DEPTH`] levels deep. The document itself contains secrets.
    positions: BTreeMap<Pointer, Position>,
}

impl Settings {
    /// Reads a settings file, YAML or JSON. References are looked up in the environment of this process.
    ///
    /// # Errors
    /// The file cannot be used; the error lists every mistake.
    pub fn read(path: &Path) -> Result<LoadedSettings, SettingsError> {
        let text = read_text(path, MAX_BYTES)?;
        Self::of_text(&text, path, &|name| std::env::var(name).ok())
    }

    /// Like [`Self::read`], from a text and with the caller's own variables. Relative paths start at the
    /// folder of the path.
    ///
    /// # Errors
    /// The text cannot be used; the error lists every mistake.
    pub fn of_text(
        text: &str,
        path: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<LoadedSettings, SettingsError> {
        let mut document = parse_document(text, path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let context = InterpolationContext {
            variable: env,
            folder,
        };
        let mut interpolated = interpolate(context, &mut document.value, &keeps_references);
        expand_shorthand(&mut document.value, &mut interpolated.masked_texts);
        let mut reading = SettingsReader {
            reader: DocumentReader::default(),
            warnings: Vec::new(),
            masked_texts: &interpolated.masked_texts,
            folder,
        };
        let settings = reading.settings(&document.root());
        let (warnings, reader) = (reading.warnings, reading.reader);
        let mistakes = relevant_mistakes(reader.finish(&document), &interpolated, &document);
        if !mistakes.is_empty() {
            let path = path.to_owned();
            return Err(SettingsError::Invalid { path, mistakes });
        }
        secrets::register_settings_secrets(&settings, &document.value, &interpolated.values);
        let mut files = vec![path.to_owned()];
        if let PolicySource::File(policy) = &settings.policy {
            files.push(policy.clone());
        }
        files.extend(interpolated.files);
        let warnings = warnings.into_iter().map(|(pointer, message)| {
            let position = document.position(&pointer);
            SettingsWarning {
                pointer,
                position,
                message,
            }
        });
        Ok(LoadedSettings {
            warnings: warnings.collect(),
            path: path.to_owned(),
            files,
            masked: mask_secrets::mask_secrets(&document.value, &interpolated.masked_texts),
            settings,
            positions: key_positions(&document),
        })
    }
}

impl LoadedSettings {
    /// The position of a key, or of the nearest key around it that is written; the start of the file if none is.
    #[must_use]
    pub fn position(&self, at: &Pointer) -> Position {
        let mut at = at.clone();
        while at != Pointer::root() {
            if let Some(position) = self.positions.get(&at) {
                return *position;
            }
            at.pop();
        }
        Position { line: 1, column: 1 }
    }

    /// The place of a server: under `servers`, or under `mcpServers`.
    #[must_use]
    pub fn server_pointer(&self, name: &str) -> Pointer {
        let lists = ["servers", "mcpServers", "mcp_servers", "mcp-servers"];
        let mut places = lists.into_iter().map(|list| Pointer::of([list, name]));
        let written = places.find(|at| self.positions.contains_key(at));
        written.unwrap_or_else(|| Pointer::of(["servers", name]))
    }

    /// The effective configuration: the written values, the defaults, and `***` in place of secrets.
    #[must_use]
    pub fn masked(&self) -> Value {
        self.masked.clone()
    }
}

/// Deep enough for the entries that are checked together with the policy: `policy.groups.NAME.when`.
const POSITION_DEPTH: usize = 4;

fn key_positions(document: &Document) -> BTreeMap<Pointer, Position> {
    let mut places = BTreeMap::new();
    let mut level = vec![(Pointer::root(), &document.value)];
    for _ in 0..POSITION_DEPTH {
        let mut next: Vec<(Pointer, &Value)> = Vec::new();
        for (at, value) in level {
            match value {
                Value::Object(members) => {
                    next.extend(members.iter().map(|(key, it)| (at.child(key), it)));
                }
                Value::Array(items) => {
                    next.extend(items.iter().enumerate().map(|(i, it)| (at.index(i), it)));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        places.extend(
            next.iter()
                .map(|(at, _)| (at.clone(), document.position(at))),
        );
        level = next;
    }
    places
}

/// Settings while they are read.
struct SettingsReader<'r> {
    reader: DocumentReader<SettingsProblem>,
    warnings: Vec<(Pointer, String)>,
    /// The texts that contained references.
    masked_texts: &'r BTreeMap<Pointer, String>,
    folder: &'r Path,
}

/// Policies use dollar signs in patterns; and the secrets of a disabled server need not exist.
fn keeps_references(at: &Pointer, value: &Value) -> bool {
    if !value.is_object() {
        return false;
    }
    let path: Vec<String> = at.segments().collect();
    match path
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["policy"] => true,
        [_, _, "tool_defaults" | "tool-defaults" | "toolDefaults"] => true,
        [list, _, "calls", _, "arguments"] => is_server_list(list),
        [list, _] => is_server_list(list) && value.get("disabled") == Some(&Value::Bool(true)),
        _ => false,
    }
}

/// Expands mappings that are written as a single text.
fn expand_shorthand(root: &mut Value, shown: &mut BTreeMap<Pointer, String>) {
    let Some(root) = root.as_object_mut() else {
        return;
    };
    let mut write_out = |value: &mut Value, at: &Pointer, key: &str| {
        if let Some(text) = shown.remove(at) {
            shown.insert(at.child(key), text);
        }
        *value = json!({key: value.take()});
    };
    for (key, value) in root {
        let at = Pointer::of([key.as_str()]);
        match (key.as_str(), &mut *value) {
            ("listen", Value::String(_)) => write_out(value, &at, "address"),
            ("traces", Value::String(_)) => write_out(value, &at, "otlp"),
            ("servers", Value::Object(servers)) => {
                for (name, server) in servers {
                    if let Value::String(text) = server {
                        let is_url = text.starts_with("http://") || text.starts_with("https://");
                        let key = if is_url { "url" } else { "command" };
                        write_out(server, &at.child(name), key);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The mistakes to report, without those that follow from an unresolved reference, and without the text of
/// expanded values.
fn relevant_mistakes(
    mistakes: Vec<SettingsMistake>,
    interpolated: &Interpolation,
    document: &Document,
) -> Vec<SettingsMistake> {
    let follows = |pointer: &Pointer| {
        let mut failed = interpolated.errors.iter().map(|(at, _)| at.as_str());
        failed.any(|at| {
            let inside = pointer.as_str().strip_prefix(at);
            inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let read = mistakes
        .into_iter()
        .filter(|it| !follows(&it.pointer))
        .map(|mut it| {
            if interpolated.masked_texts.contains_key(&it.pointer) {
                it.kind = it.kind.redact_value();
            }
            it.kind = explain_policy_key(it.kind, &it.pointer);
            it
        });
    let failed = interpolated
        .errors
        .iter()
        .map(|(pointer, mistake)| SettingsMistake {
            pointer: pointer.clone(),
            position: document.position(pointer),
            kind: mistake.clone().into(),
        });
    let mut told: Vec<_> = read.chain(failed).collect();
    told.sort_by_key(|it| it.position);
    told
}

const POLICY_KEYS: &[&str] = &[
    "tools",
    "tool",
    "resources",
    "prompts",
    "skills",
    "methods",
    "groups",
    "roles",
    "principals",
    "quarantine",
    "strict_groups",
    "mode",
    "unlisted",
    "sessions",
    "states",
    "rate",
    "audit",
    "zone",
];

/// Policies used a file of this name before settings did, so the message says which of the two is meant.
fn explain_policy_key(problem: SettingsProblem, at: &Pointer) -> SettingsProblem {
    match problem {
        SettingsProblem::Mistake(DiagnosticKind::UnknownKey { key, .. })
            if at.segments().count() == 1 && POLICY_KEYS.contains(&key.as_str()) =>
        {
            SettingsProblem::PolicyKey { key }
        }
        other => other,
    }
}
