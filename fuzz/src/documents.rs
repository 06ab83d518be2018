//! Files that people write: YAML, JSON and TOML, and the small languages in them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use toolwarden_guard::{Condition, ConditionInputs, InvalidCondition, Policy, lint};
use toolwarden_model::document::{Document, parse_duration};
use toolwarden_model::json::{Pointer, Value, parse};
use toolwarden_probe::{ProbeFileError, ProbeSuite};
use toolwarden_settings::{ClientApp, Settings, SettingsError, import_client_file, to_yaml};
use toolwarden_watch::WatchConfig;

use crate::{assert_inside, text};

/// A folder that does not exist, so that no input reads a file beside it.
const FOLDER: &str = "/nonexistent/toolwarden-fuzz";

/// Every value has a place in the text, and JSON has the value that the JSON parser gives it.
pub fn yaml_document(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    let document = match Document::read(text) {
        Ok(document) => document,
        Err(error) => return assert_inside(text, error.position, &error),
    };
    for pointer in pointers(&document.value) {
        assert_inside(text, document.position(&pointer), &pointer);
    }
    if text.trim_start().starts_with('{')
        && let Ok(parsed) = parse(text)
        && parsed.duplicates.is_empty()
    {
        assert_eq!(document.value, parsed.value);
    }
    assert_yaml_returns(&document.value);
}

/// Asserts that a value is the same after it is written as YAML and read.
fn assert_yaml_returns(value: &Value) {
    let written = to_yaml(value);
    let again = Document::read(&written).map(|again| again.value);
    assert_eq!(again.as_ref(), Ok(value), "{written}");
}

/// The pointers of the first hundred values.
fn pointers(value: &Value) -> Vec<Pointer> {
    let mut found = Vec::new();
    let mut pending = vec![(Pointer::root(), value)];
    while let Some((pointer, value)) = pending.pop() {
        match value {
            Value::Array(items) => {
                let items = items.iter().enumerate().take(100);
                pending.extend(items.map(|(at, item)| (pointer.index(at), item)));
            }
            Value::Object(members) => {
                let members = members.iter().take(100);
                pending.extend(members.map(|(key, item)| (pointer.child(key), item)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        found.push(pointer);
        if found.len() == 100 {
            break;
        }
    }
    found
}

/// A rejected policy has mistakes, each with its place; an accepted one can be linted.
pub fn policy(data: &[u8]) {
    let Some((text, document)) = document(data) else {
        return;
    };
    match Policy::read(&document) {
        Ok(read) => drop(lint(&read.policy)),
        Err(mistakes) => {
            assert!(!mistakes.is_empty());
            for mistake in mistakes {
                assert!(mistake.position.is_some(), "{mistake} has no place");
                if let Some(position) = mistake.position {
                    assert_inside(text, position, &mistake);
                }
            }
        }
    }
}

fn document(data: &[u8]) -> Option<(&str, Document)> {
    let text = text(data)?;
    Some((text, Document::read(text).ok()?))
}

/// Rejected settings have mistakes, each with its place; accepted ones have a masked form.
pub fn settings(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    // What a referenced file holds is not an input of this target.
    if text.contains("${file") {
        return;
    }
    let path = Path::new(FOLDER).join("toolwarden.yaml");
    match Settings::of_text(text, &path, &|_name| Some("7".to_owned())) {
        Ok(loaded) => {
            let masked = loaded.masked();
            assert!(masked.is_object() || masked.is_null(), "{masked}");
        }
        Err(SettingsError::Invalid { mistakes, .. }) => {
            assert!(!mistakes.is_empty());
            for mistake in mistakes {
                assert_inside(text, mistake.position, &mistake);
            }
        }
        Err(other) => assert!(!other.to_string().is_empty()),
    }
}

/// Imported servers are the same after they are written as settings and read, and notes have a place.
pub fn client_file(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    for client in ClientApp::ALL {
        let path = Path::new(FOLDER).join("mcp.json");
        let Ok(imported) = import_client_file(client, text, &path) else {
            continue;
        };
        for note in &imported.notes {
            assert_inside(text, note.position, note);
        }
        let written = imported.to_yaml();
        let read = Document::read(&written).map(|read| read.value);
        let names = read.as_ref().ok().and_then(|read| read.get("servers"));
        let names = names.and_then(Value::as_object);
        let names: Vec<&String> = names.map(|it| it.keys().collect()).unwrap_or_default();
        let mut expected: Vec<&String> = Vec::new();
        for server in &imported.servers {
            if !expected.contains(&&server.name) {
                expected.push(&server.name);
            }
        }
        assert_eq!(names, expected, "{written}");
    }
}

/// A rejected suite has mistakes, each with its place; the facts of an accepted one name its cases and tools.
pub fn probe_suite(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    match ProbeSuite::parse(text, &Path::new(FOLDER).join("suite.yaml")) {
        Ok(suite) => {
            let facts = suite.facts();
            assert_eq!(facts.cases.len(), suite.cases.len());
            assert!(facts.tools.len() <= suite.tools.len());
        }
        Err(ProbeFileError::Invalid { mistakes, .. }) => {
            assert!(!mistakes.is_empty());
            for mistake in mistakes {
                assert_inside(text, mistake.position, &mistake);
            }
        }
        Err(other) => assert!(!other.to_string().is_empty()),
    }
}

/// A configuration is read the same way twice.
pub fn watch_config(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    for name in ["watch.toml", "watch.json"] {
        let path = Path::new(FOLDER).join(name);
        let read = || WatchConfig::parse(&path, text, &|_name| None);
        assert_eq!(format!("{:?}", read()), format!("{:?}", read()));
    }
}

/// A condition keeps its text, gives the same answer twice, and a syntax error has its place.
pub fn condition(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    let condition = match Condition::parse(text) {
        Ok(condition) => condition,
        Err(InvalidCondition::Syntax { position, message }) => {
            return assert_inside(text, position, &message);
        }
        Err(_other) => return,
    };
    assert_eq!(condition.text(), text);
    let condition_inputs = ConditionInputs {
        now: Timestamp::UNIX_EPOCH,
        zone: TimeZone::UTC,
        load: Some(0.5),
        attributes: BTreeMap::from([("region".to_owned(), Value::from("eu"))]),
    };
    let answer = condition.holds(&condition_inputs);
    assert_eq!(condition.holds(&condition_inputs), answer);
}

/// White space around a duration does not count, and seconds are the default unit.
pub fn duration(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    let found = parse_duration(text).ok();
    assert_eq!(parse_duration(text.trim()).ok(), found);
    if let Ok(seconds) = text.parse::<u32>()
        && !text.starts_with('+')
    {
        assert_eq!(found, Some(Duration::from_secs(seconds.into())));
    }
}
