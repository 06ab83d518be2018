use toolwarden_model::json::{Pointer, Value};

use super::character::quote;
use super::finding::{Detector, Finding, Weight};
use super::names::segments;
use super::place;

/// What a verb in a name promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// It reads, or prepares what somebody else does.
    None,
    /// It changes something, or makes up a text about doing so.
    Perhaps,
    /// It changes something.
    Changes,
    /// It takes something away for good.
    Destroys,
}

/// Verbs by what they promise; the first known verb of a name decides.
const VERBS: [(Effect, &[&str]); 4] = [
    (
        Effect::None,
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
        Effect::Perhaps,
        &[
            "apply", "build", "create", "deploy", "exec", "execute", "invoke", "run", "save",
            "start",
        ],
    ),
    (
        Effect::Changes,
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
        Effect::Destroys,
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

/// Arguments that are carried out.
const CARRIED_OUT: [&str; 5] = ["command", "cmd", "script", "shell_command", "bash_command"];

pub(super) fn scan(definition: &Value, findings: &mut Vec<Finding>) {
    let Some(annotations) = definition.get("annotations") else {
        return;
    };
    let hint = |name: &str| annotations.get(name).and_then(Value::as_bool);
    let verb = place::name(definition).and_then(|(_, name)| verb(name));
    let mut contradict = |hint: &str, weight, message| {
        findings.push(Finding {
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
            Some((word, Effect::Perhaps)) => {
                let message = format!("calls itself read-only, and its name says {}", quote(word));
                contradict("readOnlyHint", Weight::Low, message);
            }
            Some((word, Effect::Changes | Effect::Destroys)) => {
                let message = format!("calls itself read-only, and its name says {}", quote(word));
                contradict("readOnlyHint", Weight::Medium, message);
            }
            Some((_, Effect::None)) => {}
            None => {
                if let Some(argument) = carried_out(definition) {
                    let message = format!(
                        "calls itself read-only and takes the argument {}",
                        quote(argument)
                    );
                    contradict("readOnlyHint", Weight::Medium, message);
                }
            }
        }
    }
    if let (Some(false), Some((word, Effect::Destroys))) = (hint("destructiveHint"), &verb) {
        let message = format!(
            "calls itself not destructive, and its name says {}",
            quote(word)
        );
        contradict("destructiveHint", Weight::Medium, message);
    }
}

/// The first verb of a name that we know, in lower case.
fn verb(name: &str) -> Option<(String, Effect)> {
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

fn carried_out(definition: &Value) -> Option<&'static str> {
    let arguments = place::arguments(definition)?;
    CARRIED_OUT
        .into_iter()
        .find(|name| arguments.contains_key(*name))
}
