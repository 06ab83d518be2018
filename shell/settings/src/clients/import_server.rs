use std::path::PathBuf;

use serde_json::{Value, json};
use toolwarden_guard::Redaction;
use toolwarden_mcp::{Command, Endpoint, EnvInheritance, ServerUrl};
use toolwarden_model::json::{Object, Pointer};

use super::super::is_server_name;
use super::credentials::unsupported_key_note;
use super::placeholders::{VsCodeInputs, variable_name};
use super::{ClientApp, ImportedServer};

/// Keys that describe how to reach a server; the others are the client's own.
const ENDPOINT_KEYS: &[&str] = &[
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "serverUrl",
    "headers",
    "type",
    "disabled",
];

/// An import in progress.
pub(super) struct ClientImport {
    pub(super) client: ClientApp,
    pub(super) inputs: VsCodeInputs,
    pub(super) secrets: Redaction,
    pub(super) servers: Vec<ImportedServer>,
    pub(super) notes: Vec<(Pointer, String)>,
}

impl ClientImport {
    pub(super) fn import_server(&mut self, written: &str, server: &Value, at: &Pointer) {
        let Some(members) = server.as_object() else {
            self.add_note(at, "left out: it is not an object".to_owned());
            return;
        };
        let name = self.unique_name(&sanitize_name(written));
        let noted = self.notes.len();
        let Some((endpoint, known)) = self.endpoint(&name, members, at) else {
            return;
        };
        let disabled = members.get("disabled").and_then(Value::as_bool) == Some(true);
        let server = ImportedServer {
            name: sanitize_name(written),
            endpoint,
            disabled,
        };
        if self.servers.contains(&server) {
            // The same server in another project; its notes were already added.
            self.notes.truncate(noted);
            return;
        }
        if name != written {
            self.add_note(at, format!("the server `{written}` is renamed to `{name}`"));
        }
        let others = members.keys();
        for key in
            others.filter(|key| !ENDPOINT_KEYS.contains(&key.as_str()) && !known.contains(key))
        {
            self.add_note(&at.child(key), unsupported_key_note(key, &name));
        }
        self.servers.push(ImportedServer { name, ..server });
    }

    /// How to reach a server, and the keys that were handled besides the usual ones.
    fn endpoint(
        &mut self,
        name: &str,
        members: &Object,
        at: &Pointer,
    ) -> Option<(Endpoint, Vec<String>)> {
        if let Some(program) = members.get("command").and_then(Value::as_str) {
            let program = self.translate_text(program, &at.child("command"));
            let args = self.args(name, members.get("args"), &at.child("args"));
            let env = self.pairs(members.get("env"), &at.child("env"), |key| key.to_owned());
            let directory = members.get("cwd").and_then(Value::as_str);
            let directory =
                directory.map(|it| PathBuf::from(self.translate_text(it, &at.child("cwd"))));
            let remedy = "a program gets no headers; pass what they say in `env` or `args`";
            self.note_unused_keys(members, at, &["headers"], remedy);
            let command = Command {
                program,
                args,
                env,
                inherit: EnvInheritance::default(),
                directory,
                shows_errors: false,
            };
            return Some((Endpoint::Command(command), Vec::new()));
        }
        let addresses = ["url", "serverUrl"];
        let address = addresses
            .iter()
            .find_map(|key| Some((*key, members.get(*key)?.as_str()?)));
        let Some((key, url)) = address else {
            let message = "left out: it has neither `command` nor `url`";
            self.add_note(at, message.to_owned());
            return None;
        };
        let refers = url.starts_with('$');
        if !refers && !url.starts_with("http://") && !url.starts_with("https://") {
            let message = "left out: only http and https addresses can be reached";
            self.add_note(&at.child(key), message.to_owned());
            return None;
        }
        let url = self.translate_text(url, &at.child(key));
        let named = |header: &str| variable_name(&format!("{name}-{header}"));
        let mut headers = self.pairs(members.get("headers"), &at.child("headers"), named);
        let known = self.authorization(name, members, at, &mut headers);
        let remedy =
            "a server with an address gets no environment; pass its credentials in `headers`";
        self.note_unused_keys(members, at, &["env"], remedy);
        Some((Endpoint::Url(ServerUrl { url, headers }), known))
    }

    fn args(&mut self, server: &str, args: Option<&Value>, at: &Pointer) -> Vec<String> {
        let items = args.and_then(Value::as_array).into_iter().flatten();
        let mut before: Option<String> = None;
        let mut out = Vec::new();
        for (index, item) in items.enumerate() {
            let at = at.index(index);
            let text = self.translate_text(&plain_text(item), &at);
            let option = text.strip_prefix("--").map(|it| it.split_once('='));
            let secret = match (&option, &before) {
                (Some(Some((key, value))), _) => Some(((*key).to_owned(), (*value).to_owned())),
                (None, Some(key)) => Some((key.clone(), text.clone())),
                (Some(None), _) | (None, None) => None,
            };
            if let Some((key, value)) = secret {
                let variable = variable_name(&format!("{server}-{key}"));
                self.warn_of_secret(&key, &value, &variable, &at);
            }
            before = match option {
                Some(None) => text.strip_prefix("--").map(ToOwned::to_owned),
                _ => None,
            };
            out.push(text);
        }
        out
    }

    fn pairs(
        &mut self,
        pairs: Option<&Value>,
        at: &Pointer,
        named: impl Fn(&str) -> String,
    ) -> Vec<(String, String)> {
        let members = pairs.and_then(Value::as_object).into_iter().flatten();
        let mut out = Vec::new();
        for (key, value) in members {
            let at = at.child(key);
            if value.is_null() {
                self.add_note(&at, "left out: it unsets a variable".to_owned());
                continue;
            }
            let text = self.translate_text(&plain_text(value), &at);
            self.warn_of_secret(key, &text, &named(key), &at);
            out.push((key.clone(), text));
        }
        out
    }

    /// A translated text.
    pub(super) fn translate_text(&mut self, written: &str, at: &Pointer) -> String {
        let translated = self.inputs.translate(written);
        for note in translated.notes {
            self.add_note(at, note);
        }
        if translated.has_references && self.client == ClientApp::ClaudeDesktop {
            let message = "Claude Desktop does not expand `${…}`; the gateway does";
            self.add_note(at, message.to_owned());
        }
        translated.text
    }

    pub(super) fn warn_of_secret(&mut self, key: &str, text: &str, variable: &str, at: &Pointer) {
        let (_, is_secret) = self.secrets.redact_pointer(&Pointer::of([key]));
        let literal = !text.trim().is_empty() && !text.contains("${");
        if is_secret && literal {
            let message = format!(
                "`{key}` looks like a plaintext secret; write `${{{variable}}}` and set the variable"
            );
            self.add_note(at, message);
        }
    }

    fn unique_name(&self, name: &str) -> String {
        let taken = |name: &str| self.servers.iter().any(|it| it.name == name);
        let numbered = (2..).map(|number| {
            let end = format!("-{number}");
            let room = 64_usize.saturating_sub(end.len());
            let start: String = name.chars().take(room).collect();
            start + &end
        });
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names
            .find(|it| !taken(it))
            .unwrap_or_else(|| name.to_owned())
    }

    pub(super) fn add_note(&mut self, at: &Pointer, message: String) {
        self.notes.push((at.clone(), message));
    }
}

impl ImportedServer {
    /// The server as a value of the settings.
    pub(super) fn to_value(&self) -> Value {
        let mut out = Object::new();
        match &self.endpoint {
            Endpoint::Command(command) => {
                out.insert("command".to_owned(), command.program.clone().into());
                // Without a list, a command with blanks would be read as a whole command line.
                if !command.args.is_empty() || command.program.contains(' ') {
                    out.insert("args".to_owned(), json!(command.args));
                }
                insert_pairs(&mut out, "env", &command.env);
                if let Some(folder) = &command.directory {
                    let folder = folder.to_string_lossy().into_owned();
                    out.insert("cwd".to_owned(), folder.into());
                }
            }
            Endpoint::Url(url) => {
                out.insert("url".to_owned(), url.url.clone().into());
                insert_pairs(&mut out, "headers", &url.headers);
            }
        }
        if self.disabled {
            out.insert("disabled".to_owned(), true.into());
        }
        Value::Object(out)
    }
}

fn insert_pairs(out: &mut Object, key: &str, pairs: &[(String, String)]) {
    if !pairs.is_empty() {
        let pairs = pairs.iter();
        let pairs: Object = pairs
            .map(|(key, value)| (key.clone(), value.clone().into()))
            .collect();
        out.insert(key.to_owned(), Value::Object(pairs));
    }
}

fn plain_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// A valid server name, as close to the given one as possible.
fn sanitize_name(written: &str) -> String {
    if is_server_name(written) {
        return written.to_owned();
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = written
        .chars()
        .map(|c| if fits(c) { c } else { '-' })
        .take(64)
        .collect();
    let name = name.trim_matches('-');
    match name.is_empty() {
        true => "server".to_owned(),
        false => name.to_owned(),
    }
}
