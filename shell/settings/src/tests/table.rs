//! Compares the reader with the schema, key by key.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolwarden_model::document::{DiagnosticKind, Document};
use toolwarden_model::json::Pointer;
use toolwarden_schema::Validator;

use super::super::{
    ServerSettings, Settings, SettingsError, SettingsMistake, SettingsProblem, schema,
};
use super::{FULL, load};

const EXAMPLES: &[&str] = &[
    FULL,
    "{}",
    "servers: {a: npx -y x}\nidentity: {anonymous: me}",
    "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"autoApprove\": []}}}",
    "listen: localhost:1\npolicy: policy.yaml\nwatch: {on_drift: hide, before_call: never}\ntraces: http://h",
    "drain: ${PORT}\npage_size: ${COUNT}\nwatch: {every: '${PORT}s'}",
];

fn validator() -> Validator {
    Validator::new(&schema()).unwrap()
}

fn mistakes(document: &Value) -> Vec<SettingsMistake> {
    match load(&document.to_string()) {
        Ok(_) => Vec::new(),
        Err(SettingsError::Invalid { mistakes, .. }) => mistakes,
        Err(other) => panic!("{other}"),
    }
}

/// A mapping of the schema: the documents that contain it, as a function of its value.
struct Mapping {
    name: String,
    at: Pointer,
}

/// The place of each mapping of the schema in a document.
fn mappings() -> Vec<Mapping> {
    let places = [
        ("", ""),
        ("listen", "/listen"),
        ("tls", "/listen/tls"),
        ("limits", "/listen/limits"),
        ("server", "/servers/a"),
        ("client_server", "/mcpServers/a"),
        ("call", "/servers/a/calls/0"),
        ("timeouts", "/servers/a/timeouts"),
        ("restart", "/servers/a/restart"),
        ("breaker", "/servers/a/breaker"),
        ("server_limits", "/servers/a/limits"),
        ("watch", "/watch"),
        ("watch", "/servers/a/watch"),
        ("on_drift", "/watch/on_drift"),
        ("identity", "/identity"),
        ("api_key", "/identity/api_keys/0"),
        ("jwt", "/identity/jwt/0"),
        ("roles", "/identity/jwt/0/roles"),
        ("admin", "/identity/admins/0"),
        ("certificate", "/identity/certificates/0"),
        ("alert", "/alerts/a"),
        ("smtp", "/alerts/a/smtp"),
        ("misuse", "/misuse"),
        ("sessions", "/sessions"),
        ("traces", "/traces"),
    ];
    places
        .map(|(name, at)| Mapping {
            name: name.to_owned(),
            at: Pointer::from(at),
        })
        .into()
}

/// A document with a value at a place.
fn document(at: &Pointer, value: Value) -> Value {
    let segments: Vec<String> = at.segments().collect();
    segments
        .iter()
        .rev()
        .fold(value, |inside, segment| match segment.as_str() {
            "0" => json!([inside]),
            key => json!({key: inside}),
        })
}

fn properties(schema: &Value, name: &str) -> BTreeSet<String> {
    let mapping = match name {
        "" => schema,
        name => &schema["$defs"][name],
    };
    let properties = mapping["properties"].as_object().unwrap();
    properties.keys().cloned().collect()
}

#[test]
fn every_mapping_of_the_schema_is_looked_at() {
    let schema = schema();
    let definitions = schema["$defs"].as_object().unwrap().keys();
    let defined: BTreeSet<&str> = definitions.map(String::as_str).collect();
    let mappings = mappings();
    let seen = mappings.iter().map(|it| it.name.as_str());
    let mut seen: BTreeSet<&str> = seen.filter(|name| !name.is_empty()).collect();
    seen.insert("reference");
    assert_eq!(seen, defined);
}

#[test]
fn the_reader_reads_every_key_of_the_schema() {
    let schema = schema();
    for Mapping { name, at } in mappings() {
        for key in properties(&schema, &name) {
            let said = &schema["$defs"][&name]["properties"][&key];
            if said["description"] == json!("Ignored by the gateway.") {
                continue;
            }
            // No key accepts a list of lists, so a key that is read causes a mistake.
            let mut mapping = json!({&key: [[[]]]});
            // These keys are read together with the keys they belong to.
            match (name.as_str(), key.as_str()) {
                ("server" | "client_server", "type" | "args" | "env" | "cwd" | "inherit_env") => {
                    mapping["command"] = "x".into();
                }
                ("server" | "client_server", "headers") => mapping["url"] = "http://h".into(),
                _ => {}
            }
            let nonsense = document(&at, mapping);
            let place = at.child(&key);
            let mistakes = mistakes(&nonsense);
            let inside = |it: &&SettingsMistake| it.pointer.as_str().starts_with(place.as_str());
            let told: Vec<_> = mistakes.iter().filter(inside).collect();
            let unknown = told.iter().any(|it| {
                matches!(
                    it.kind,
                    SettingsProblem::Mistake(DiagnosticKind::UnknownKey { .. })
                )
            });
            assert!(!told.is_empty() && !unknown, "{place}: {mistakes:?}");
        }
    }
}

#[test]
fn the_schema_has_every_key_of_the_reader() {
    let schema = schema();
    for Mapping { name, at } in mappings() {
        let strange = document(&at.child("zzzzzzzz"), json!(1));
        let mistakes = mistakes(&strange);
        let known = mistakes.iter().find_map(|it| match &it.kind {
            SettingsProblem::Mistake(DiagnosticKind::UnknownKey { suggestion, .. }) => {
                suggestion.strip_prefix("; known are ")
            }
            _ => None,
        });
        let known = known.unwrap_or_else(|| panic!("{at}: {mistakes:?}"));
        let properties = properties(&schema, &name);
        for key in known.split(", ") {
            assert!(properties.contains(key), "{at}: {key}");
        }
    }
}

#[test]
fn every_example_is_read_and_fits_the_schema() {
    let validator = validator();
    for text in EXAMPLES {
        load(text).unwrap_or_else(|error| panic!("{error}"));
        let value = Document::read(text).unwrap().value;
        assert_eq!(validator.rejection(&value), None, "{text}");
    }
}

#[test]
fn the_schema_rejects_what_the_reader_rejects() {
    let validator = validator();
    let cases = [
        "lisen: x",
        "servers: {a b: x}",
        "servers: {a: {}}",
        "servers: {a: {command: x, url: y}}",
        "watch: {on_drift: block}",
        "watch: {every: soon}",
        "listen: {max_body: 8 MiBs}",
        "servers: {a: {command: x, concurrency: 0}}",
        "identity: {api_keys: [{principal: a}]}",
        "alerts: {a: {smtp: {server: h}}}",
        "traces: {sample: 2, otlp: http://h}",
        "version: 2",
    ];
    for text in cases {
        assert!(load(text).is_err(), "{text}");
        let value = Document::read(text).unwrap().value;
        assert!(validator.rejection(&value).is_some(), "{text}");
    }
}

#[test]
fn the_defaults_of_the_table_are_those_in_force() {
    let shown = load("{}").unwrap().masked();
    let written = load(&shown.to_string()).unwrap().settings;
    let expected = Settings {
        store: "etc/toolwarden.db".into(),
        ..Settings::default()
    };
    assert_eq!(written, expected);

    let shown =
        load("servers: {a: {command: x}}\nidentity: {jwt: [{audience: a, issuer: https://i}]}");
    let shown = shown.unwrap();
    let again = load(&shown.masked().to_string()).unwrap();
    assert_eq!(again.settings, shown.settings);
    assert_eq!(again.masked(), shown.masked());
    let server = &again.settings.servers[0];
    assert_eq!(*server, ServerSettings::new("a", server.endpoint.clone()));
}
