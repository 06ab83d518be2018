//! Converts the TOML file that came before the settings.

use std::path::Path;

use serde_json::{Value, json};
use toolwarden_mcp::Endpoint;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_settings::is_server_name;

use super::parse::{
    ROOT_KEYS, SERVER_KEYS, check_known_keys, object, positive, read_document, text,
};
use super::{ServerFileKind, WatchConfig, WatchConfigError};

impl WatchConfig {
    /// A watch configuration from before the settings, as settings with the same meaning. References to
    /// variables stay references.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn to_settings(path: &Path, text: &str) -> Result<Value, WatchConfigError> {
        if ServerFileKind::detect(path, text) != ServerFileKind::WatchFile {
            return Err(WatchConfigError::NotWatchFile);
        }
        let document = read_document(path, text)?;
        let at = Pointer::root();
        let members = object(&document, &at)?;
        check_known_keys(members, ROOT_KEYS, &at)?;
        let Some(servers) = members.get("servers") else {
            return Err(WatchConfigError::NoServers);
        };
        let at = at.child("servers");
        let mut converted = Object::new();
        for (name, server) in object(servers, &at)? {
            let at = at.child(name);
            if !is_server_name(name) {
                return Err(WatchConfigError::ServerName { pointer: at });
            }
            let server = object(server, &at)?;
            check_known_keys(server, SERVER_KEYS, &at)?;
            converted.insert(name.clone(), Value::Object(settings_server(server, &at)?));
        }
        let mut settings = Object::new();
        settings.insert("servers".to_owned(), Value::Object(converted));
        let watch = watch_section(members)?;
        if !watch.is_empty() {
            settings.insert("watch".to_owned(), Value::Object(watch));
        }
        Ok(Value::Object(settings))
    }
}

/// The section `watch` of the settings.
fn watch_section(members: &Object) -> Result<Object, WatchConfigError> {
    let root = Pointer::root();
    let number = |key: &str, value: &Value| positive(value, &root.child(key));
    let mut watch = Object::new();
    for (key, value) in members {
        let (key, value) = match key.as_str() {
            "check_interval_seconds" => ("every", json!(format!("{}s", number(key, value)?))),
            "window_hours" => ("window", json!(format!("{}h", number(key, value)?))),
            // Without names, all tools are watched, as without the key.
            "tools" if value.as_array().is_some_and(Vec::is_empty) => continue,
            "servers" => continue,
            other => (other, value.clone()),
        };
        watch.insert(key.to_owned(), value);
    }
    Ok(watch)
}

/// An entry of `servers`.
fn settings_server(members: &Object, at: &Pointer) -> Result<Object, WatchConfigError> {
    let mut server = Object::new();
    for (key, value) in members {
        match key.as_str() {
            "timeout_seconds" => {
                let seconds = positive(value, &at.child(key))?;
                let time = format!("{seconds}s");
                server.insert(
                    "timeouts".to_owned(),
                    json!({"start": time, "request": time}),
                );
            }
            // Arguments of calls are kept as they are, in both formats.
            "calls" => {
                server.insert(key.clone(), value.clone());
            }
            _ => {
                server.insert(key.clone(), escape_dollars(value));
            }
        }
    }
    split_command_line(members, at, &mut server)?;
    Ok(server)
}

/// Writes a command line as program and arguments: in settings, a line with references cannot be split.
fn split_command_line(
    members: &Object,
    at: &Pointer,
    server: &mut Object,
) -> Result<(), WatchConfigError> {
    let has_args = members.get("args").and_then(Value::as_array);
    let Some(command) = members.get("command") else {
        return Ok(());
    };
    let line = text(command, &at.child("command"))?;
    if has_args.is_some_and(|args| !args.is_empty()) || !line.contains(' ') {
        return Ok(());
    }
    let read = Endpoint::command_line(line).map_err(|source| WatchConfigError::Endpoint {
        pointer: at.child("command"),
        source,
    })?;
    if let Endpoint::Command(line) = read {
        server.insert("command".to_owned(), escape_dollars(&line.program.into()));
        server.insert("args".to_owned(), escape_dollars(&line.args.into()));
    }
    Ok(())
}

/// The same texts for settings, where two dollar signs stand for one, and an unclosed reference is a
/// mistake.
fn escape_dollars(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(escape_text(text)),
        Value::Array(items) => items.iter().map(escape_dollars).collect(),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(key, value)| (key.clone(), escape_dollars(value)));
            Value::Object(members.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn escape_text(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((reference, after)) = after.split_once('}') else {
            break;
        };
        out.push_str(&before.replace('$', "$$"));
        out.push_str(&format!("${{{reference}}}"));
        rest = after;
    }
    out.push_str(&rest.replace('$', "$$"));
    out
}
