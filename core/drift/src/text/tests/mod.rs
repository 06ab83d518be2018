mod corpus;
mod injection;
mod names;
mod robust;
mod together;
mod unicode;

use toolwarden_model::json::{Value, parse};

use super::{TextFinding, scan};

fn json(text: &str) -> Value {
    parse(text).expect("the test is JSON").value
}

/// A definition with one description.
fn described(description: &str) -> Value {
    let mut definition = json(r#"{"name": "x", "description": ""}"#);
    definition["description"] = Value::from(description);
    definition
}

/// A finding as one line.
fn line(finding: &TextFinding) -> String {
    let decoded = finding.decoded.as_deref();
    format!(
        "{} {} {} {}{}",
        finding.detector,
        finding.weight,
        finding.pointer,
        finding.message,
        decoded.map_or_else(String::new, |decoded| format!(" = {decoded}")),
    )
}

fn lines(definition: &Value) -> Vec<String> {
    scan(definition).iter().map(line).collect()
}

/// What a description gives, all of it at `/description`.
fn check_text(text: &str, expected: &[&str]) {
    let found: Vec<String> = lines(&described(text))
        .iter()
        .map(|line| line.replacen(" /description ", " ", 1))
        .collect();
    assert_eq!(found, expected, "{}", text.escape_unicode());
}
