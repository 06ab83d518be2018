//! Restrictions that went, and words that take one away.

use super::token::{self, Token};

/// Words that restrict, a group per kind: another word of the same kind takes the place of one.
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

/// What makes an order of `not`.
const ORDERS: &[&str] = &["do", "must", "should", "may", "can", "shall"];

/// What `without` takes away.
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

/// Words that take restrictions away by themselves.
const FREE: &[&str] = &[
    "unrestricted",
    "unlimited",
    "bypass",
    "bypasses",
    "bypassing",
    "disregarding",
    "overrides",
];

/// The words that restricted and are gone, and those that take a restriction away.
pub(super) fn lifted(
    removed: &[&str],
    before: &str,
    after: &str,
    words: &[Token<'_>],
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
    let words = token::of(text);
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        // `if not provided` restricts nothing, `must not` does.
        let is_order = |it: &&Token<'_>| ORDERS.contains(&&*it.lower);
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
