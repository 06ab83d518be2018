//! Members that a host may obey when it decides how careful to be: confirmations, strictness, lists of
//! what is allowed.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::json::{Pointer, to_canonical_string};

use crate::change::{Change, ChangeClass};
use crate::facet::Facet;

/// Switches that ask for caution when they are on; without case and separators.
const CAREFUL: &[&str] = &[
    "confirm",
    "confirmation",
    "confirmationrequired",
    "humanintheloop",
    "needsapproval",
    "needsconfirmation",
    "requireapproval",
    "requireconfirmation",
    "requiresapproval",
    "requiresauthentication",
    "requiresauth",
    "requiresconfirmation",
    "requireshumanapproval",
    "requiresuserconfirmation",
    "requiresuserinteraction",
    "sandbox",
    "sandboxed",
    "strict",
    "untrusted",
];

/// Switches that ask for less caution when they are on.
const CARELESS: &[&str] = &[
    "allowall",
    "alwaysallow",
    "autoapprove",
    "autoapproved",
    "autoconfirm",
    "autoexecute",
    "autorun",
    "bypassapproval",
    "bypassconfirmation",
    "skipapproval",
    "skipconfirmation",
    "trusted",
];

/// Lists that grant something to each of their entries.
const GRANTS: &[&str] = &[
    "allowed",
    "allowedcallers",
    "allowedcommands",
    "alloweddomains",
    "allowedhosts",
    "allowedorigins",
    "allowedpaths",
    "allowedtools",
    "allowlist",
    "alwaysallow",
    "autoapprove",
    "trustedhosts",
    "whitelist",
];

/// Lists that take something from each of their entries.
const DENIALS: &[&str] = &[
    "blockedcommands",
    "blockeddomains",
    "blockedpaths",
    "blocklist",
    "deniedtools",
    "denylist",
    "disallowedtools",
    "excludedpaths",
];

/// The maximum depth of a member that is searched.
const MAX_DEPTH: usize = 32;

/// Turns the changes of a tool that ask for less caution into changes of trust.
pub(crate) fn classify_caution(changes: &mut [Change]) {
    for change in changes {
        let is_member = match change.evidence.facet {
            Facet::Annotations | Facet::Meta | Facet::Other => true,
            Facet::Input | Facet::Output => change.rule == "keyword",
            _ => false,
        };
        if !is_member || change.class >= ChangeClass::Trust {
            continue;
        }
        if let Some(message) = less_caution(change) {
            change.class = ChangeClass::Trust;
            change.message = message;
        }
    }
}

fn less_caution(change: &Change) -> Option<String> {
    let names = change.pointer.segments();
    let names = names.filter(|name| !name.bytes().all(|it| it.is_ascii_digit()));
    let name = names.last().unwrap_or_default();
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    members(&name, change.before.as_ref(), &Pointer::root(), &mut before);
    members(&name, change.after.as_ref(), &Pointer::root(), &mut after);
    let places = before.iter().chain(&after);
    let places: BTreeMap<&Pointer, &str> =
        places.map(|(at, (name, _))| (at, name.as_str())).collect();
    let value = |side: &BTreeMap<Pointer, (String, Value)>, at: &Pointer| {
        side.get(at).map(|(_, value)| value.clone())
    };
    places.into_iter().find_map(|(at, name)| {
        let meaning = is_less(
            name,
            value(&before, at).as_ref(),
            value(&after, at).as_ref(),
        )?;
        Some(format!("{meaning}: `{name}`"))
    })
}

/// The members of a value that have one of the known names, by place.
fn members(
    name: &str,
    value: Option<&Value>,
    at: &Pointer,
    found: &mut BTreeMap<Pointer, (String, Value)>,
) {
    let Some(value) = value.filter(|_| at.segments().count() < MAX_DEPTH) else {
        return;
    };
    let folded = fold(name);
    let known = [CAREFUL, CARELESS, GRANTS, DENIALS];
    if known.iter().any(|names| names.contains(&folded.as_str())) {
        found.insert(at.clone(), (name.to_owned(), value.clone()));
    }
    match value {
        Value::Object(inner) => {
            for (key, value) in inner {
                members(key, Some(value), &at.child(key), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate().filter(|(_, it)| it.is_object()) {
                members("", Some(item), &at.index(index), found);
            }
        }
        _ => {}
    }
}

fn fold(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// What a change of a member means, if it asks for less caution.
fn is_less(name: &str, before: Option<&Value>, after: Option<&Value>) -> Option<&'static str> {
    let name = fold(name);
    let name = name.as_str();
    if CAREFUL.contains(&name) && is_on(before) && !is_on(after) {
        return Some("the tool no longer asks for caution");
    }
    if CARELESS.contains(&name) && !is_on(before) && is_on(after) {
        return Some("the tool now asks for less caution");
    }
    let (had, has) = (entries(before), entries(after));
    let is_new = |list: &Option<Vec<String>>, other: &Option<Vec<String>>| {
        let other = other.as_deref().unwrap_or_default();
        let mut entries = list.iter().flatten();
        entries.any(|entry| !other.contains(entry))
    };
    // Without the list, everything is allowed, unless it lists exceptions.
    let is_unlimited = had.is_some() && has.is_none() && !CARELESS.contains(&name);
    if GRANTS.contains(&name) && (is_unlimited || (had.is_some() && is_new(&has, &had))) {
        return Some("more is allowed than before");
    }
    if DENIALS.contains(&name) && is_new(&had, &has) {
        return Some("less is forbidden than before");
    }
    None
}

/// Whether a switch is on. Some hosts write it as a word.
fn is_on(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(on)) => *on,
        Some(Value::String(word)) => !matches!(
            word.to_lowercase().as_str(),
            "" | "never" | "no" | "none" | "false" | "off" | "auto" | "optional" | "disabled"
        ),
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(_)) => true,
        Some(Value::Null) | None => false,
    }
}

fn entries(value: Option<&Value>) -> Option<Vec<String>> {
    match value? {
        Value::Array(items) => Some(items.iter().map(to_canonical_string).collect()),
        word @ Value::String(_) => Some(vec![to_canonical_string(word)]),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}
