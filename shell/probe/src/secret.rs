//! Keys, and how they are kept out of all output.

mod html_escape;
mod redactor;
mod split_secret;

use std::fmt;

pub use redactor::Redactor;

/// A secret text, such as the key of a provider.
///
/// It cannot be printed or serialized, so that it gets into no file, log or error by accident.
///
/// ```compile_fail
/// println!("{}", toolwarden_probe::ApiKey::new("secret").unwrap());
/// ```
/// ```compile_fail
/// serde_json::to_string(&toolwarden_probe::ApiKey::new("secret").unwrap());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// A key from a text, trimmed. `None` if the text is blank.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The text itself, only for the header of a request.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

/// Whether a text looks like a pasted key.
///
/// Known prefixes count, and long words of mixed letters and digits like those of key generators.
pub(crate) fn looks_like_secret(text: &str) -> bool {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '"' | '\''));
    let mut after_scheme = false;
    for word in words {
        if (after_scheme && !word.is_empty()) || is_key_like(word) {
            return true;
        }
        let scheme = ["bearer", "basic"];
        after_scheme = scheme.iter().any(|it| word.eq_ignore_ascii_case(it));
    }
    false
}

/// Prefixes of the keys of well-known providers.
const PREFIXES: [&str; 9] = [
    "sk-", "sk_", "AIza", "gsk_", "xai-", "ark-", "hf_", "bce-v3/", "tp-",
];

fn is_key_like(word: &str) -> bool {
    const SHORTEST: usize = 32;
    let has = |test: fn(&char) -> bool| word.chars().any(|c| test(&c));
    let digits = has(char::is_ascii_digit);
    let known = PREFIXES.iter().any(|it| word.starts_with(it));
    if known && word.len() >= 12 && (digits || word.len() >= 20) {
        return true;
    }
    let is_token = word
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/' | '='));
    is_token && word.len() >= SHORTEST && digits && has(char::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_does_not_print_itself() {
        let key = ApiKey::new(" sk-secret-123\n").unwrap();
        assert_eq!(format!("{key:?} {key:#?}"), "Key(***) Key(***)");
        assert_eq!(key.expose(), "sk-secret-123");
        assert_eq!(ApiKey::new(" \n"), None);
    }

    #[test]
    fn keys_differ_from_ordinary_header_values() {
        for text in [
            "sk-proj-1234567890",
            "Bearer abc",
            "basic dXNlcjpwYXNz",
            "AIzaSyA-1234567890abcdef",
            "0123456789abcdef0123456789abcdef",
            "token: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        ] {
            assert!(looks_like_secret(text), "{text}");
        }
        for text in [
            "2023-06-01",
            "toolwarden/0.1",
            "application/json; charset=utf-8",
            "team-platform-engineering-evaluations",
            "${MY_TOKEN}",
            "app-Mu12q6",
            "the bearer",
        ] {
            assert!(!looks_like_secret(text), "{text}");
        }
    }
}
