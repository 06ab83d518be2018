/// Words longer than this are in no vocabulary.
const LONGEST: usize = 16;

/// Hands over the words of a text in lower case, at most `limit` of them.
///
/// A word ends at anything that is no letter or digit, where a small letter meets a capital, and
/// before the last capital of a run (`HTTPServer` is `http`, `server`).
pub(super) fn each(text: &str, limit: usize, mut see: impl FnMut(&[u8])) {
    let mut word = Word::default();
    let mut seen = 0;
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let before = at
            .checked_sub(1)
            .and_then(|at| bytes.get(at))
            .copied()
            .unwrap_or(b' ');
        let after = bytes.get(at + 1).copied().unwrap_or(b' ');
        let starts = byte.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || (before.is_ascii_uppercase() && after.is_ascii_lowercase()));
        let letter = byte.is_ascii_alphanumeric() || !byte.is_ascii();
        if (starts || !letter) && word.length > 0 {
            see(word.bytes());
            word = Word::default();
            seen += 1;
            if seen == limit {
                return;
            }
        }
        if letter {
            word.push(byte.to_ascii_lowercase());
        }
    }
    if word.length > 0 {
        see(word.bytes());
    }
}

#[derive(Default)]
struct Word {
    letters: [u8; LONGEST],
    length: usize,
}

impl Word {
    fn push(&mut self, letter: u8) {
        if let Some(place) = self.letters.get_mut(self.length) {
            *place = letter;
        }
        self.length += 1;
    }

    /// The letters; a word that is too long is no word we know.
    fn bytes(&self) -> &[u8] {
        self.letters.get(..self.length).unwrap_or(b"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each(text, usize::MAX, |word| {
            words.push(String::from_utf8_lossy(word).into_owned())
        });
        words
    }

    #[test]
    fn boundaries() {
        assert_eq!(words("getHTTPServer2Go"), ["get", "http", "server2", "go"]);
        assert_eq!(words("a_b-c.d/e f"), ["a", "b", "c", "d", "e", "f"]);
        assert_eq!(words("récupérer"), ["récupérer"]);
        assert_eq!(words("pneumonoultramicroscopic get"), ["", "get"]);
        assert!(words("__--  ").is_empty());
    }
}
