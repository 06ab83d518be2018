//! The servers to watch, from our own configuration or from that of an MCP client.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;
use toolwarden_drift::ChangeType;
use toolwarden_mcp::{Command, Endpoint, Inherit, InvalidEndpoint, Url};
use toolwarden_model::closest;
use toolwarden_model::json::{Object, Pointer, type_name};

use crate::DEFAULT_SCOPE;

/// What is watched, how often, and what alerts.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchConfig {
    /// The tools to watch; none means all.
    pub tools: Vec<String>,
    /// The time between two checks of a server.
    pub check_interval: Duration,
    /// The change types that alert.
    pub alert_on: Vec<ChangeType>,
    /// How many results make a shape that later results are held to.
    pub learn_results: u64,
    /// How far back results are compared with the pinned shape.
    pub window: Duration,
    /// The servers, by name.
    pub servers: BTreeMap<String, WatchedServer>,
}

/// A server to watch.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedServer {
    /// How it is reached.
    pub reached: Reached,
    /// For whom it is asked.
    pub scope: String,
    /// How long it may take.
    pub timeout: Duration,
    /// Calls to make at every check.
    pub calls: Vec<WatchedCall>,
}

/// How the tools of a server are seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Reached {
    /// By asking it.
    Live(Endpoint),
    /// From files somebody else writes.
    Files(Vec<PathBuf>),
}

/// A call that shows what a tool returns.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedCall {
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
}

/// Why a configuration cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// It is no TOML.
    #[error("not TOML: {message}")]
    Toml {
        /// The parser's words, with the line.
        message: String,
    },
    /// It is no JSON.
    #[error("not JSON: {message}")]
    Json {
        /// The parser's words, with the line.
        message: String,
    },
    /// A key is not known.
    #[error("{pointer}: unknown key `{key}`{suggestion}")]
    UnknownKey {
        /// The place.
        pointer: Pointer,
        /// The key.
        key: String,
        /// What may have been meant.
        suggestion: String,
    },
    /// A value is not what it has to be.
    #[error("{pointer}: expected {expected}, found {found}")]
    Type {
        /// The place.
        pointer: Pointer,
        /// What it has to be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A word is not known.
    #[error("{pointer}: unknown word `{word}`{suggestion}")]
    Word {
        /// The place.
        pointer: Pointer,
        /// The word.
        word: String,
        /// What may have been meant.
        suggestion: String,
    },
    /// A server cannot be reached by what is said.
    #[error("{pointer}: a server needs one of `command`, `url` and `files`")]
    Unreachable {
        /// The place.
        pointer: Pointer,
    },
    /// An address or command is none.
    #[error("{pointer}: {source}")]
    Endpoint {
        /// The place.
        pointer: Pointer,
        /// Why.
        source: InvalidEndpoint,
    },
    /// A variable of the environment is not set.
    #[error("{pointer}: the environment variable `{name}` is not set")]
    Unset {
        /// The place.
        pointer: Pointer,
        /// The variable.
        name: String,
    },
    /// There is nothing to watch.
    #[error("no servers: name at least one under `servers`")]
    NoServers,
}

const ROOT_KEYS: &[&str] = &[
    "tools",
    "check_interval_seconds",
    "alert_on",
    "learn_results",
    "window_hours",
    "servers",
];
const SERVER_KEYS: &[&str] = &[
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
    /// Reads a configuration: TOML, or JSON where the file is called so. `variable` looks up
    /// `${NAME}`.
    ///
    /// # Errors
    /// Names the place that is not as it has to be.
    pub fn parse(
        path: &Path,
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let json =
            path.extension().is_some_and(|it| it == "json") || text.trim_start().starts_with('{');
        let document: Value = if json {
            serde_json::from_str(text).map_err(|error| ConfigError::Json {
                message: error.to_string(),
            })?
        } else {
            toml::from_str(text).map_err(|error: toml::de::Error| ConfigError::Toml {
                message: error.to_string().trim_end().to_owned(),
            })?
        };
        let servers = document.get("mcpServers");
        let reader = Reader {
            of_client: servers.is_some(),
            variable,
        };
        let at = Pointer::root();
        match servers {
            Some(servers) => reader.of_client(servers, &at.child("mcpServers")),
            None => reader.config(&document, &at),
        }
    }
}

struct Reader<'r> {
    /// Whether the file is a client's, which starts programs by their whole name.
    of_client: bool,
    variable: &'r dyn Fn(&str) -> Option<String>,
}

impl Reader<'_> {
    fn config(&self, document: &Value, at: &Pointer) -> Result<WatchConfig, ConfigError> {
        let members = object(document, at)?;
        known(members, ROOT_KEYS, at)?;
        let mut config = WatchConfig::default();
        if let Some(tools) = members.get("tools") {
            config.tools = texts(tools, &at.child("tools"))?;
        }
        if let Some(seconds) = members.get("check_interval_seconds") {
            let seconds = positive(seconds, &at.child("check_interval_seconds"))?;
            config.check_interval = Duration::from_secs(seconds);
        }
        if let Some(words) = members.get("alert_on") {
            let at = at.child("alert_on");
            let words = texts(words, &at)?;
            let read = words.iter().map(|word| change_type(word, &at));
            config.alert_on = read.collect::<Result<_, _>>()?;
        }
        if let Some(results) = members.get("learn_results") {
            config.learn_results = positive(results, &at.child("learn_results"))?;
        }
        if let Some(hours) = members.get("window_hours") {
            let hours = positive(hours, &at.child("window_hours"))?;
            config.window = Duration::from_secs(hours.saturating_mul(3600));
        }
        let Some(servers) = members.get("servers") else {
            return Err(ConfigError::NoServers);
        };
        let at = at.child("servers");
        for (name, server) in object(servers, &at)? {
            let at = at.child(name);
            known(object(server, &at)?, SERVER_KEYS, &at)?;
            config
                .servers
                .insert(name.clone(), self.server(server, &at)?);
        }
        filled(config)
    }

    /// The configuration of a client. What else it says there is the client's business.
    fn of_client(&self, servers: &Value, at: &Pointer) -> Result<WatchConfig, ConfigError> {
        let mut config = WatchConfig::default();
        for (name, server) in object(servers, at)? {
            let disabled = server.get("disabled").and_then(Value::as_bool);
            if disabled != Some(true) {
                let server = self.server(server, &at.child(name))?;
                config.servers.insert(name.clone(), server);
            }
        }
        filled(config)
    }

    fn server(&self, server: &Value, at: &Pointer) -> Result<WatchedServer, ConfigError> {
        let members = object(server, at)?;
        let timeout = match members.get("timeout_seconds") {
            Some(seconds) => positive(seconds, &at.child("timeout_seconds"))?,
            None => 60,
        };
        let scope = match members.get("scope") {
            Some(scope) => text(scope, &at.child("scope"))?.to_owned(),
            None => DEFAULT_SCOPE.to_owned(),
        };
        let mut calls = Vec::new();
        if let Some(list) = members.get("calls") {
            let at = at.child("calls");
            for (index, entry) in array(list, &at)?.iter().enumerate() {
                calls.push(call(entry, &at.index(index))?);
            }
        }
        Ok(WatchedServer {
            reached: self.reached(members, at)?,
            scope,
            timeout: Duration::from_secs(timeout),
            calls,
        })
    }

    fn reached(&self, members: &Object, at: &Pointer) -> Result<Reached, ConfigError> {
        let (command, url) = (members.get("command"), members.get("url"));
        match (command, url, members.get("files")) {
            (Some(command), None, None) => {
                let args = match members.get("args") {
                    Some(args) => self.all_texts(args, &at.child("args"))?,
                    None => Vec::new(),
                };
                let command = self.expanded(command, &at.child("command"))?;
                let env = self.pairs(members.get("env"), &at.child("env"))?;
                let directory = match members.get("cwd") {
                    Some(folder) => Some(self.expanded(folder, &at.child("cwd"))?.into()),
                    None => None,
                };
                let inherit = Inherit::Minimal(match members.get("inherit_env") {
                    Some(names) => self.all_texts(names, &at.child("inherit_env"))?,
                    None => Vec::new(),
                });
                // One line with everything in it, as it would be typed.
                if !self.of_client && args.is_empty() && command.contains(' ') {
                    let read = Endpoint::command_line(&command);
                    let read = read.map_err(|source| ConfigError::Endpoint {
                        pointer: at.child("command"),
                        source,
                    })?;
                    if let Endpoint::Command(line) = read {
                        return Ok(Reached::Live(Endpoint::Command(Command {
                            env,
                            inherit,
                            directory,
                            shows_errors: false,
                            ..line
                        })));
                    }
                }
                Ok(Reached::Live(Endpoint::Command(Command {
                    program: command,
                    args,
                    env,
                    inherit,
                    directory,
                    shows_errors: false,
                })))
            }
            (None, Some(url), None) => {
                let url = self.expanded(url, &at.child("url"))?;
                let read = Endpoint::url(&url).map_err(|source| ConfigError::Endpoint {
                    pointer: at.child("url"),
                    source,
                })?;
                let headers = self.pairs(members.get("headers"), &at.child("headers"))?;
                Ok(Reached::Live(match read {
                    Endpoint::Url(url) => Endpoint::Url(Url { headers, ..url }),
                    command @ Endpoint::Command(_) => command,
                }))
            }
            (None, None, Some(files)) => {
                let files = self.all_texts(files, &at.child("files"))?;
                Ok(Reached::Files(
                    files.into_iter().map(PathBuf::from).collect(),
                ))
            }
            _ => Err(ConfigError::Unreachable {
                pointer: at.clone(),
            }),
        }
    }

    fn all_texts(&self, value: &Value, at: &Pointer) -> Result<Vec<String>, ConfigError> {
        let items = array(value, at)?.iter().enumerate();
        items
            .map(|(index, item)| self.expanded(item, &at.index(index)))
            .collect()
    }

    fn pairs(
        &self,
        value: Option<&Value>,
        at: &Pointer,
    ) -> Result<Vec<(String, String)>, ConfigError> {
        let Some(value) = value else {
            return Ok(Vec::new());
        };
        let members = object(value, at)?.iter();
        members
            .map(|(key, value)| Ok((key.clone(), self.expanded(value, &at.child(key))?)))
            .collect()
    }

    /// A text with `${NAME}` replaced, so that secrets stay out of files.
    fn expanded(&self, value: &Value, at: &Pointer) -> Result<String, ConfigError> {
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
            let value = value.ok_or_else(|| ConfigError::Unset {
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

impl Default for WatchConfig {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            check_interval: Duration::from_secs(300),
            alert_on: ChangeType::ALL.to_vec(),
            learn_results: 30,
            window: Duration::from_secs(24 * 3600),
            servers: BTreeMap::new(),
        }
    }
}

fn filled(config: WatchConfig) -> Result<WatchConfig, ConfigError> {
    if config.servers.is_empty() {
        return Err(ConfigError::NoServers);
    }
    Ok(config)
}

fn call(entry: &Value, at: &Pointer) -> Result<WatchedCall, ConfigError> {
    let members = object(entry, at)?;
    known(members, CALL_KEYS, at)?;
    let none = Value::Null;
    let tool = text(members.get("tool").unwrap_or(&none), &at.child("tool"))?;
    let arguments = match members.get("arguments") {
        Some(arguments) => {
            object(arguments, &at.child("arguments"))?;
            arguments.clone()
        }
        None => Value::Object(Object::new()),
    };
    Ok(WatchedCall {
        tool: tool.to_owned(),
        arguments,
    })
}

fn change_type(word: &str, at: &Pointer) -> Result<ChangeType, ConfigError> {
    let mut known = ChangeType::ALL.into_iter();
    known
        .find(|it| it.as_str() == word)
        .ok_or_else(|| ConfigError::Word {
            pointer: at.clone(),
            word: word.to_owned(),
            suggestion: closest(word, ChangeType::ALL.iter().map(|it| it.as_str())),
        })
}

fn known(members: &Object, known: &[&str], at: &Pointer) -> Result<(), ConfigError> {
    match members.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(ConfigError::UnknownKey {
            pointer: at.child(key),
            key: key.clone(),
            suggestion: closest(key, known.iter().copied()),
        }),
        None => Ok(()),
    }
}

fn wrong(value: &Value, expected: &'static str, at: &Pointer) -> ConfigError {
    ConfigError::Type {
        pointer: at.clone(),
        expected,
        found: type_name(value),
    }
}

fn object<'v>(value: &'v Value, at: &Pointer) -> Result<&'v Object, ConfigError> {
    value.as_object().ok_or_else(|| wrong(value, "a table", at))
}

fn array<'v>(value: &'v Value, at: &Pointer) -> Result<&'v Vec<Value>, ConfigError> {
    value.as_array().ok_or_else(|| wrong(value, "a list", at))
}

fn text<'v>(value: &'v Value, at: &Pointer) -> Result<&'v str, ConfigError> {
    value.as_str().ok_or_else(|| wrong(value, "a text", at))
}

fn texts(value: &Value, at: &Pointer) -> Result<Vec<String>, ConfigError> {
    let items = array(value, at)?.iter().enumerate();
    items
        .map(|(index, item)| text(item, &at.index(index)).map(ToOwned::to_owned))
        .collect()
}

fn positive(value: &Value, at: &Pointer) -> Result<u64, ConfigError> {
    let number = value.as_u64().filter(|number| *number > 0);
    number.ok_or_else(|| wrong(value, "a whole number above 0", at))
}
