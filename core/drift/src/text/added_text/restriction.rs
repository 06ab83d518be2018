//! Restrictions that were removed, and words that lift one.

use super::token::{self, WordToken};

/// Words that restrict, one group per kind: a word can replace another of the same kind.
const KINDS: [&[&str]; 3] = [
    &[
        "never",
        "don't",
        "cannot",
        "can't",
        "mustn't",
        "won't",
        "forbidden",
        "prohibited",
        "avoid",
        "disallowed",
        "refuses",
        "rejects",
        "denied",
    ],
    &[
        "only",
        "solely",
        "exclusively",
        "limited",
        "restricted",
        "read-only",
        "readonly",
        "sandboxed",
        "sandbox",
        "allowlist",
        "allowlisted",
        "whitelisted",
        "permitted",
        "allowed",
    ],
    &[
        "confirm",
        "confirms",
        "confirmed",
        "confirmation",
        "approval",
        "approve",
        "permission",
        "consent",
        "dry-run",
        "careful",
        "caution",
        "warning",
        "destructive",
        "irreversible",
        "dangerous",
    ],
];

/// Words that turn `not` into an order.
const ORDERS: &[&str] = &["do", "must", "should", "may", "can", "shall"];

/// Words that `without` removes.
const WITHOUT: &[&str] = &[
    "confirmation",
    "confirming",
    "asking",
    "approval",
    "permission",
    "consent",
    "restriction",
    "restrictions",
    "limit",
    "limits",
    "limitation",
    "sandbox",
    "validation",
    "checks",
    "telling",
    "informing",
    "warning",
    "prompting",
    "review",
];

/// Words that lift restrictions by themselves.
const FREE: &[&str] = &[
    "unrestricted",
    "unlimited",
    "bypass",
    "bypasses",
    "bypassing",
    "disregarding",
    "overrides",
];

/// The restricting words that were removed, and the added words that lift a restriction.
pub(super) fn find_lifted_restrictions(
    removed: &[&str],
    before: &str,
    after: &str,
    words: &[WordToken<'_>],
) -> Vec<String> {
    let mut found = Vec::new();
    for kind in KINDS {
        if restricting(before, kind).len() <= restricting(after, kind).len() {
            continue;
        }
        let gone = removed.iter().flat_map(|run| restricting(run, kind));
        found.extend(gone.take(1));
    }
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).filter(|_| !word.ends);
        if word.added && FREE.contains(&&*word.lower) {
            found.push(word.raw.to_owned());
        }
        let Some(next) = next.filter(|next| word.added || next.added) else {
            continue;
        };
        let takes = match word.lower.as_str() {
            "without" => WITHOUT.contains(&&*next.lower),
            "no" => next.lower == "longer",
            "regardless" => next.lower == "of",
            _ => false,
        };
        if takes {
            found.push(format!("{} {}", word.raw, next.raw));
        }
    }
    found
}

/// The words of a text that restrict in one way.
fn restricting(text: &str, kind: &[&str]) -> Vec<String> {
    let words = token::tokenize(text);
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        // `if not provided` restricts nothing, `must not` does.
        let is_order = |it: &&WordToken<'_>| ORDERS.contains(&&*it.lower);
        match before.filter(is_order).filter(|_| word.lower == "not") {
            Some(before) if kind.contains(&"never") => {
                found.push(format!("{} {}", before.raw, word.raw));
            }
            _ if kind.contains(&&*word.lower) => found.push(word.raw.to_owned()),
            _ => {}
        }
    }
    found
}
