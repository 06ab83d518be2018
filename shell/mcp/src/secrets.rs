//! What a server was told and nobody else may read.

use std::fmt;
use std::sync::Arc;

use crate::endpoint::Endpoint;

/// A shorter word is found everywhere, and guards nothing.
const SHORTEST: usize = 6;
/// What stands in place of a secret.
const MASK: &str = "***";

/// The words of the variables or headers of a server. A server may repeat them in what it says of
/// itself, which others read.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[String]>);

impl Secrets {
    /// Those of an endpoint.
    #[must_use]
    pub fn of(endpoint: &Endpoint) -> Self {
        match endpoint {
            Endpoint::Command(command) => Self::of_pairs(&command.env),
            Endpoint::Url(url) => Self::of_pairs(&url.headers),
        }
    }

    pub(crate) fn of_pairs(pairs: &[(String, String)]) -> Self {
        let words = pairs.iter().flat_map(|(_, value)| value.split_whitespace());
        let words = words.filter(|word| word.len() >= SHORTEST && *word != "Bearer");
        let mut words: Vec<String> = words.map(ToOwned::to_owned).collect();
        // One may be a part of another.
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        Self(words.into())
    }

    /// A text without them.
    #[must_use]
    pub fn hidden(&self, mut text: String) -> String {
        for word in &*self.0 {
            if text.contains(word.as_str()) {
                text = text.replace(word.as_str(), MASK);
            }
        }
        text
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_hidden_and_short_ones_stay() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let secrets = Secrets::of_pairs(&[
            pair("A", "Bearer abcdef"),
            pair("B", "abcdef-and-more"),
            pair("C", "1"),
        ]);
        let text = "1: abcdef-and-more, then abcdef; Bearer".to_owned();
        assert_eq!(secrets.hidden(text), "1: ***, then ***; Bearer");
        assert_eq!(format!("{secrets:?}"), "Secrets");
    }
}
