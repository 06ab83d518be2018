//! Reads the TOML file that came before the settings, the same in JSON, and the file of an MCP client.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use toolwarden_drift::ToolwatchChangeType;
use toolwarden_mcp::{Command, Endpoint, EnvInheritance, ServerUrl};
use toolwarden_model::did_you_mean;
use toolwarden_model::json::{Object, Pointer, type_name};
use toolwarden_settings::{SampleCall, WatchSettings};

use super::{ToolListSource, WatchConfig, WatchConfigError, WatchedServer};

pub(super) const ROOT_KEYS: &[&str] = &[
    "tools",
    "check_interval_seconds",
    "alert_on",
    "learn_results",
    "window_hours",
    "servers",
];
pub(super) const SERVER_KEYS: &[&str] = &[
    "command",
    "args",
    "env",
    "cwd",
    "inherit_env",
    "url",
    "headers",
    "files",
    "scope",
    "timeout_seconds",
    "calls",
];
const CALL_KEYS: &[&str] = &["tool", "arguments"];

impl WatchConfig {
    /// Parses a configuration that is not settings: JSON if the file name says so, and otherwise TOML.
    /// `variable` looks up `${NAME}`.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn parse(
        path: &Path,
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, WatchConfigError> {
        let document = read_document(path, text)?;
        let servers = document.get("mcpServers");
        let reader = ConfigReader {
            of_client: servers.is_some(),
            variable,
        };
        let at = Pointer::root();
        match servers {
            Some(servers) => reader.client_config(servers, &at.child("mcpServers")),
            None => reader.config(&document, &at),
        }
    }
}

/// The document in a file: JSON if the file name or the first character says so, and otherwise TOML.
pub(super) fn read_document(path: &Path, text: &str) -> Result<Value, WatchConfigError> {
    let is_json =
        path.extension().is_some_and(|it| it == "json") || text.trim_start().starts_with('{');
    if is_json {
        return serde_json::from_str(text).map_err(|error| WatchConfigError::Json {
            message: error.to_string(),
        });
    }
    toml::from_str(text).map_err(|error: toml::de::Error| WatchConfigError::Toml {
        message: error.to_string().trim_end().to_owned(),
    })
}

/// Whether a JSON document has only keys of a watch configuration. Settings name servers under the same
/// key; what both can read is read as before.
pub(super) fn is_watch_file(document: &Value) -> bool {
    let has_only = |value: &Value, keys: &[&str]| {
        let members = value.as_object();
        members.is_some_and(|it| it.keys().all(|key| keys.contains(&key.as_str())))
    };
    let servers = document.get("servers").and_then(Value::as_object);
    let mut servers = servers.into_iter().flatten().map(|(_, server)| server);
    has_only(document, ROOT_KEYS) && servers.all(|it| has_only(it, SERVER_KEYS))
}

struct ConfigReader<'r> {
    /// Whether the file belongs to an MCP client, which puts only the program into `command`.
    of_client: bool,
    variable: &'r dyn Fn(&str) -> Option<String>,
}

impl ConfigReader<'_> {
    fn config(&self, document: &Value, at: &Pointer) -> Result<WatchConfig, WatchConfigError> {
        let members = object(document, at)?;
        check_known_keys(members, ROOT_KEYS, at)?;
        let watch = watch_settings(members, at)?;
        let Some(servers) = members.get("servers") else {
            return Err(WatchConfigError::NoServers);
        };
        let mut config = WatchConfig::default();
        let at = at.child("servers");
        for (name, server) in object(servers, &at)? {
            let at = at.child(name);
            check_known_keys(object(server, &at)?, SERVER_KEYS, &at)?;
            let server = self.server(server, &at, &watch)?;
            config.servers.insert(name.clone(), server);
        }
        config.require_servers()
    }

    /// The configuration of a client. Its other keys are ignored.
    fn client_config(
        &self,
        servers: &Value,
        at: &Pointer,
    ) -> Result<WatchConfig, WatchConfigError> {
        let mut config = WatchConfig::default();
        for (name, server) in object(servers, at)? {
            let disabled = server.get("disabled").and_then(Value::as_bool);
            if disabled != Some(true) {
                let watch = WatchSettings::default();
                let server = self.server(server, &at.child(name), &watch)?;
                config.servers.insert(name.clone(), server);
            }
        }
        config.require_servers()
    }

    fn server(
        &self,
        server: &Value,
        at: &Pointer,
        watch: &WatchSettings,
    ) -> Result<WatchedServer, WatchConfigError> {
        let members = object(server, at)?;
        let timeout = match members.get("timeout_seconds") {
            Some(seconds) => positive(seconds, &at.child("timeout_seconds"))?,
            None => 60,
        };
        let scope = match members.get("scope") {
            Some(scope) => Some(text(scope, &at.child("scope"))?.to_owned()),
            None => None,
        };
        let mut calls = Vec::new();
        if let Some(list) = members.get("calls") {
            let at = at.child("calls");
            for (index, entry) in array(list, &at)?.iter().enumerate() {
                calls.push(call(entry, &at.index(index))?);
            }
        }
        let source = self.tool_list_source(members, at)?;
        Ok(WatchedServer {
            timeout: Duration::from_secs(timeout),
            calls,
            ..WatchedServer::new(source, scope.as_ref(), watch)
        })
    }

    fn tool_list_source(
        &self,
        members: &Object,
        at: &Pointer,
    ) -> Result<ToolListSource, WatchConfigError> {
        let (command, url) = (members.get("command"), members.get("url"));
        match (command, url, members.get("files")) {
            (Some(command), None, None) => {
                let args = match members.get("args") {
                    Some(args) => self.all_texts(args, &at.child("args"))?,
                    None => Vec::new(),
                };
                let command = self.expand_variables(command, &at.child("command"))?;
                let env = self.pairs(members.get("env"), &at.child("env"))?;
                let directory = match members.get("cwd") {
                    Some(folder) => Some(self.expand_variables(folder, &at.child("cwd"))?.into()),
                    None => None,
                };
                let inherit = EnvInheritance::Minimal(match members.get("inherit_env") {
                    Some(names) => self.all_texts(names, &at.child("inherit_env"))?,
                    None => Vec::new(),
                });
                // A single line with program and arguments, as in a shell.
                if !self.of_client && args.is_empty() && command.contains(' ') {
                    let read = Endpoint::command_line(&command);
                    let read = read.map_err(|source| WatchConfigError::Endpoint {
                        pointer: at.child("command"),
                        source,
                    })?;
                    if let Endpoint::Command(line) = read {
                        return Ok(ToolListSource::Live(Endpoint::Command(Command {
                            env,
                            inherit,
                            directory,
                            shows_errors: false,
                            ..line
                        })));
                    }
                }
                Ok(ToolListSource::Live(Endpoint::Command(Command {
                    program: command,
                    args,
                    env,
                    inherit,
                    directory,
                    shows_errors: false,
                })))
            }
            (None, Some(url), None) => {
                let url = self.expand_variables(url, &at.child("url"))?;
                let read = Endpoint::url(&url).map_err(|source| WatchConfigError::Endpoint {
                    pointer: at.child("url"),
                    source,
                })?;
                let headers = self.pairs(members.get("headers"), &at.child("headers"))?;
                Ok(ToolListSource::Live(match read {
                    Endpoint::Url(url) => Endpoint::Url(ServerUrl { headers, ..url }),
                    command @ Endpoint::Command(_) => command,
                }))
            }
            (None, None, Some(files)) => {
                let files = self.all_texts(files, &at.child("files"))?;
                Ok(ToolListSource::Files(
                    files.into_iter().map(PathBuf::from).collect(),
                ))
            }
            _ => Err(WatchConfigError::Unreachable {
                pointer: at.clone(),
            }),
        }
    }

    fn all_texts(&self, value: &Value, at: &Pointer) -> Result<Vec<String>, WatchConfigError> {
        let items = array(value, at)?.iter().enumerate();
        items
            .map(|(index, item)| self.expand_variables(item, &at.index(index)))
            .collect()
    }

    fn pairs(
        &self,
        value: Option<&Value>,
        at: &Pointer,
    ) -> Result<Vec<(String, String)>, WatchConfigError> {
        let Some(value) = value else {
            return Ok(Vec::new());
        };
        let members = object(value, at)?.iter();
        members
            .map(|(key, value)| Ok((key.clone(), self.expand_variables(value, &at.child(key))?)))
            .collect()
    }

    /// A text with `${NAME}` replaced, so that secrets stay out of files.
    fn expand_variables(&self, value: &Value, at: &Pointer) -> Result<String, WatchConfigError> {
        let mut rest = text(value, at)?;
        let mut out = String::new();
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}') else {
                break;
            };
            out.push_str(before);
            let name = name.strip_prefix("env:").unwrap_or(name);
            let (name, otherwise) = match name.split_once(":-") {
                Some((name, otherwise)) => (name, Some(otherwise.to_owned())),
                None => (name, None),
            };
            let value = (self.variable)(name).or(otherwise);
            let value = value.ok_or_else(|| WatchConfigError::Unset {
                pointer: at.clone(),
                name: name.to_owned(),
            })?;
            out.push_str(&value);
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// The keys of the root that say how servers are watched.
fn watch_settings(members: &Object, at: &Pointer) -> Result<WatchSettings, WatchConfigError> {
    let mut watch = WatchSettings::default();
    if let Some(tools) = members.get("tools") {
        watch.tools = texts(tools, &at.child("tools"))?;
    }
    if let Some(seconds) = members.get("check_interval_seconds") {
        let seconds = positive(seconds, &at.child("check_interval_seconds"))?;
        watch.check_interval = Duration::from_secs(seconds);
    }
    if let Some(words) = members.get("alert_on") {
        let at = at.child("alert_on");
        let words = texts(words, &at)?;
        let read = words.iter().map(|word| change_type(word, &at));
        watch.alert_on = read.collect::<Result<_, _>>()?;
    }
    if let Some(results) = members.get("learn_results") {
        watch.learn_results = positive(results, &at.child("learn_results"))?;
    }
    if let Some(hours) = members.get("window_hours") {
        let hours = positive(hours, &at.child("window_hours"))?;
        watch.window = Duration::from_secs(hours.saturating_mul(3600));
    }
    Ok(watch)
}

fn call(entry: &Value, at: &Pointer) -> Result<SampleCall, WatchConfigError> {
    let members = object(entry, at)?;
    check_known_keys(members, CALL_KEYS, at)?;
    let none = Value::Null;
    let tool = text(members.get("tool").unwrap_or(&none), &at.child("tool"))?;
    let arguments = match members.get("arguments") {
        Some(arguments) => {
            object(arguments, &at.child("arguments"))?;
            arguments.clone()
        }
        None => Value::Object(Object::new()),
    };
    Ok(SampleCall {
        tool: tool.to_owned(),
        arguments,
    })
}

fn change_type(word: &str, at: &Pointer) -> Result<ToolwatchChangeType, WatchConfigError> {
    let mut known = ToolwatchChangeType::ALL.into_iter();
    known
        .find(|it| it.as_str() == word)
        .ok_or_else(|| WatchConfigError::Word {
            pointer: at.clone(),
            word: word.to_owned(),
            suggestion: did_you_mean(word, ToolwatchChangeType::ALL.iter().map(|it| it.as_str())),
        })
}

pub(super) fn check_known_keys(
    members: &Object,
    known: &[&str],
    at: &Pointer,
) -> Result<(), WatchConfigError> {
    match members.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(WatchConfigError::UnknownKey {
            pointer: at.child(key),
            key: key.clone(),
            suggestion: did_you_mean(key, known.iter().copied()),
        }),
        None => Ok(()),
    }
}

fn type_error(value: &Value, expected: &'static str, at: &Pointer) -> WatchConfigError {
    WatchConfigError::Type {
        pointer: at.clone(),
        expected,
        found: type_name(value),
    }
}

pub(super) fn object<'v>(value: &'v Value, at: &Pointer) -> Result<&'v Object, WatchConfigError> {
    value
        .as_object()
        .ok_or_else(|| type_error(value, "a table", at))
}

fn array<'v>(value: &'v Value, at: &Pointer) -> Result<&'v Vec<Value>, WatchConfigError> {
    value
        .as_array()
        .ok_or_else(|| type_error(value, "a list", at))
}

pub(super) fn text<'v>(value: &'v Value, at: &Pointer) -> Result<&'v str, WatchConfigError> {
    value
        .as_str()
        .ok_or_else(|| type_error(value, "a text", at))
}

fn texts(value: &Value, at: &Pointer) -> Result<Vec<String>, WatchConfigError> {
    let items = array(value, at)?.iter().enumerate();
    items
        .map(|(index, item)| text(item, &at.index(index)).map(ToOwned::to_owned))
        .collect()
}

pub(super) fn positive(value: &Value, at: &Pointer) -> Result<u64, WatchConfigError> {
    let number = value.as_u64().filter(|number| *number > 0);
    number.ok_or_else(|| type_error(value, "a whole number above 0", at))
}
