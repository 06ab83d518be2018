//! Reads settings, and tells every mistake in them at once.

mod alerts;
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
use toolwarden_files::{as_document, read_text};
use toolwarden_model::document::{Document, Mistake, Reader};
use toolwarden_model::json::{Object, Pointer, Position};

use super::interpolate::{Interpolated, Surroundings, interpolate};
use super::problem::MAX_BYTES;
use super::{
    PolicySource, Settings, SettingsError, SettingsMistake, SettingsProblem, SettingsWarning,
    masked, secrets,
};

/// Settings that were read and checked.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What they say.
    pub settings: Settings,
    /// What is legal and surprising.
    pub warnings: Vec<SettingsWarning>,
    /// The file.
    pub path: PathBuf,
    /// Every file that says something: the settings, the policy, and those referred to.
    pub files: Vec<PathBuf>,
    masked: Value,
    /// Where keys stand, two levels deep. The document itself has secrets in it.
    places: BTreeMap<Pointer, Position>,
}

impl Settings {
    /// Reads a settings file, YAML or JSON. References are looked up in the environment of this
    /// process.
    ///
    /// # Errors
    /// The file cannot be used; every mistake in it is told.
    pub fn read(path: &Path) -> Result<Loaded, SettingsError> {
        let text = read_text(path, MAX_BYTES)?;
        Self::of_text(&text, path, &|name| std::env::var(name).ok())
    }

    /// As [`Self::read`], from a text and with variables of one's own. Relative paths start at the
    /// folder of the path.
    ///
    /// # Errors
    /// The text cannot be used; every mistake in it is told.
    pub fn of_text(
        text: &str,
        path: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Loaded, SettingsError> {
        let mut document = as_document(text, path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let surroundings = Surroundings {
            variable: env,
            folder,
        };
        let mut put_in = interpolate(surroundings, &mut document.value, &stays_as_written);
        write_out(&mut document.value, &mut put_in.shown);
        let mut reading = Reading {
            reader: Reader::default(),
            warnings: Vec::new(),
            shown: &put_in.shown,
            folder,
        };
        let settings = reading.settings(&document.root());
        let (warnings, reader) = (reading.warnings, reading.reader);
        let mistakes = told(reader.finish(&document), &put_in, &document);
        if !mistakes.is_empty() {
            let path = path.to_owned();
            return Err(SettingsError::Invalid { path, mistakes });
        }
        secrets::remember(&settings, &document.value, &put_in.values);
        let mut files = vec![path.to_owned()];
        if let PolicySource::File(policy) = &settings.policy {
            files.push(policy.clone());
        }
        files.extend(put_in.files);
        let warnings = warnings.into_iter().map(|(pointer, message)| {
            let position = document.position(&pointer);
            SettingsWarning {
                pointer,
                position,
                message,
            }
        });
        Ok(Loaded {
            warnings: warnings.collect(),
            path: path.to_owned(),
            files,
            masked: masked::of(&document.value, &put_in.shown),
            settings,
            places: places(&document),
        })
    }
}

impl Loaded {
    /// Where a key of the file, or a key within one, stands; the start of the file where it is not
    /// written.
    #[must_use]
    pub fn position(&self, at: &Pointer) -> Position {
        let start = Position { line: 1, column: 1 };
        self.places.get(at).copied().unwrap_or(start)
    }

    /// The place of a server: ours, or pasted from a client.
    #[must_use]
    pub fn server_pointer(&self, name: &str) -> Pointer {
        let lists = ["servers", "mcpServers", "mcp_servers", "mcp-servers"];
        let mut places = lists.into_iter().map(|list| Pointer::of([list, name]));
        let written = places.find(|at| self.places.contains_key(at));
        written.unwrap_or_else(|| Pointer::of(["servers", name]))
    }

    /// The configuration in force: what is written, what holds where nothing is, and `***` in place of
    /// secrets.
    #[must_use]
    pub fn masked(&self) -> Value {
        self.masked.clone()
    }
}

fn places(document: &Document) -> BTreeMap<Pointer, Position> {
    let mut places = BTreeMap::new();
    let keys = |value: &Value| {
        value
            .as_object()
            .into_iter()
            .flat_map(Object::keys)
            .cloned()
            .collect::<Vec<_>>()
    };
    for key in keys(&document.value) {
        let at = Pointer::of([key.as_str()]);
        places.insert(at.clone(), document.position(&at));
        for inner in document.value.get(&key).map(keys).unwrap_or_default() {
            let at = at.child(&inner);
            places.insert(at.clone(), document.position(&at));
        }
    }
    places
}

/// Settings that are being read.
struct Reading<'r> {
    reader: Reader<SettingsProblem>,
    warnings: Vec<(Pointer, String)>,
    /// The texts that referred to something.
    shown: &'r BTreeMap<Pointer, String>,
    folder: &'r Path,
}

/// Policies have dollars of their own, in patterns; and the secrets of a server that is left out need
/// not be there.
fn stays_as_written(at: &Pointer, value: &Value) -> bool {
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
        [list, _] => is_list_of_servers(list) && value.get("disabled") == Some(&Value::Bool(true)),
        _ => false,
    }
}

pub(super) fn is_list_of_servers(key: &str) -> bool {
    matches!(
        key,
        "servers" | "mcpServers" | "mcp_servers" | "mcp-servers"
    )
}

/// Writes out mappings in whose place a text stands.
fn write_out(root: &mut Value, shown: &mut BTreeMap<Pointer, String>) {
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

/// The mistakes to tell: what follows from a reference that leads nowhere is left out, and so is the
/// text of what was put in.
fn told(
    mistakes: Vec<SettingsMistake>,
    put_in: &Interpolated,
    document: &Document,
) -> Vec<SettingsMistake> {
    let follows = |pointer: &Pointer| {
        let mut failed = put_in.mistakes.iter().map(|(at, _)| at.as_str());
        failed.any(|at| {
            let inside = pointer.as_str().strip_prefix(at);
            inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let read = mistakes
        .into_iter()
        .filter(|it| !follows(&it.pointer))
        .map(|mut it| {
            if put_in.shown.contains_key(&it.pointer) {
                it.mistake = it.mistake.without_value();
            }
            it.mistake = of_policy(it.mistake, &it.pointer);
            it
        });
    let failed = put_in
        .mistakes
        .iter()
        .map(|(pointer, mistake)| SettingsMistake {
            pointer: pointer.clone(),
            position: document.position(pointer),
            mistake: mistake.clone().into(),
        });
    let mut told: Vec<_> = read.chain(failed).collect();
    told.sort_by_key(|it| it.position);
    told
}

const POLICY_KEYS: &[&str] = &[
    "tools",
    "groups",
    "roles",
    "principals",
    "quarantine",
    "strict_groups",
    "mode",
    "rate",
    "audit",
    "zone",
];

/// Policies had a file of this name before settings did, so that it says which of the two is meant.
fn of_policy(problem: SettingsProblem, at: &Pointer) -> SettingsProblem {
    match problem {
        SettingsProblem::Mistake(Mistake::UnknownKey { key, .. })
            if at.segments().count() == 1 && POLICY_KEYS.contains(&key.as_str()) =>
        {
            SettingsProblem::PolicyKey { key }
        }
        other => other,
    }
}
