use toolwarden_model::json::{Pointer, Value};

use super::character::quote;
use super::definition_parts;
use super::finding::{Detector, TextFinding, Weight};
use super::name_words::segments;

/// What the verb in a name implies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VerbPromise {
    /// It reads, or prepares an action that another party performs.
    None,
    /// It changes something, or writes a text about doing so.
    Perhaps,
    /// It changes something.
    Changes,
    /// It destroys something permanently.
    Destroys,
}

/// Verbs by what they imply; the first known verb of a name decides.
const VERBS: [(VerbPromise, &[&str]); 4] = [
    (
        VerbPromise::None,
        &[
            "analyse",
            "analyze",
            "audit",
            "browse",
            "can",
            "check",
            "compare",
            "count",
            "describe",
            "diff",
            "draft",
            "dry",
            "estimate",
            "explain",
            "explore",
            "export",
            "fetch",
            "find",
            "generate",
            "get",
            "how",
            "inspect",
            "is",
            "list",
            "lookup",
            "plan",
            "preview",
            "query",
            "read",
            "retrieve",
            "review",
            "scan",
            "search",
            "select",
            "show",
            "simulate",
            "status",
            "suggest",
            "summarize",
            "test",
            "validate",
            "verify",
            "view",
            "watch",
        ],
    ),
    (
        VerbPromise::Perhaps,
        &[
            "apply", "build", "create", "deploy", "exec", "execute", "invoke", "run", "save",
            "start",
        ],
    ),
    (
        VerbPromise::Changes,
        &[
            "append",
            "archive",
            "cancel",
            "disable",
            "edit",
            "enable",
            "insert",
            "install",
            "kill",
            "merge",
            "modify",
            "move",
            "patch",
            "post",
            "publish",
            "push",
            "put",
            "remove",
            "rename",
            "replace",
            "restart",
            "revoke",
            "send",
            "set",
            "shutdown",
            "stop",
            "submit",
            "terminate",
            "transfer",
            "uninstall",
            "update",
            "upload",
            "upsert",
            "write",
        ],
    ),
    (
        VerbPromise::Destroys,
        &[
            "delete", "destroy", "drop", "erase", "purge", "truncate", "wipe",
        ],
    ),
];

/// Verbs that are as often nouns: they count only at the start of a name.
const ALSO_NOUNS: [&str; 14] = [
    "archive", "build", "drop", "exec", "merge", "move", "patch", "post", "push", "run", "set",
    "start", "stop", "update",
];

/// Arguments that are executed.
const EXECUTED_ARGUMENTS: [&str; 5] = ["command", "cmd", "script", "shell_command", "bash_command"];

pub(super) fn scan(definition: &Value, findings: &mut Vec<TextFinding>) {
    let Some(annotations) = definition.get("annotations") else {
        return;
    };
    let hint = |name: &str| annotations.get(name).and_then(Value::as_bool);
    let verb = definition_parts::tool_name(definition).and_then(|(_, name)| verb(name));
    let mut contradict = |hint: &str, weight, message| {
        findings.push(TextFinding {
            detector: Detector::AnnotationContradiction,
            weight,
            pointer: Pointer::of(["annotations", hint]),
            message,
            decoded: None,
        });
    };
    if hint("readOnlyHint") == Some(true) {
        if hint("destructiveHint") == Some(true) {
            let message = "calls itself read-only and destructive".to_owned();
            contradict("readOnlyHint", Weight::Medium, message);
        }
        match &verb {
            Some((word, VerbPromise::Perhaps)) => {
                let message = format!("calls itself read-only, and its name says {}", quote(word));
                contradict("readOnlyHint", Weight::Low, message);
            }
            Some((word, VerbPromise::Changes | VerbPromise::Destroys)) => {
                let message = format!("calls itself read-only, and its name says {}", quote(word));
                contradict("readOnlyHint", Weight::Medium, message);
            }
            Some((_, VerbPromise::None)) => {}
            None => {
                if let Some(argument) = executed_argument(definition) {
                    let message = format!(
                        "calls itself read-only and takes the argument {}",
                        quote(argument)
                    );
                    contradict("readOnlyHint", Weight::Medium, message);
                }
            }
        }
    }
    if let (Some(false), Some((word, VerbPromise::Destroys))) = (hint("destructiveHint"), &verb) {
        let message = format!(
            "calls itself not destructive, and its name says {}",
            quote(word)
        );
        contradict("destructiveHint", Weight::Medium, message);
    }
}

/// The first known verb of a name, in lower case.
fn verb(name: &str) -> Option<(String, VerbPromise)> {
    segments(name).iter().enumerate().find_map(|(at, word)| {
        let word = word.to_lowercase();
        if at > 0 && ALSO_NOUNS.contains(&word.as_str()) {
            return None;
        }
        let (effect, _) = VERBS
            .iter()
            .find(|(_, verbs)| verbs.contains(&word.as_str()))?;
        Some((word, *effect))
    })
}

fn executed_argument(definition: &Value) -> Option<&'static str> {
    let arguments = definition_parts::arguments(definition)?;
    EXECUTED_ARGUMENTS
        .into_iter()
        .find(|name| arguments.contains_key(*name))
}
