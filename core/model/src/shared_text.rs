use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A text, or a part of one, that shares its memory with its clones and with its own parts.
///
/// The definitions of a long list are parts of the list's text, so the list is in memory once. A part
/// keeps the whole text alive: copy it where it outlives the list.
#[derive(Clone)]
pub struct SharedText {
    // A string and not a slice: a file that was read becomes one without a copy.
    whole: Arc<String>,
    start: usize,
    end: usize,
}

impl SharedText {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // INVARIANT: both ends are those of a part of the text.
        self.whole.get(self.start..self.end).unwrap_or_default()
    }

    /// A part of this text, sharing its memory; of a text from elsewhere a copy.
    #[must_use]
    pub fn part(&self, part: &str) -> Self {
        let whole = self.whole.as_ptr() as usize;
        let inside = (part.as_ptr() as usize)
            .checked_sub(whole)
            .and_then(|start| Some((start, start.checked_add(part.len())?)))
            .filter(|(start, end)| self.whole.get(*start..*end).is_some());
        match inside {
            Some((start, end)) => Self {
                whole: Arc::clone(&self.whole),
                start,
                end,
            },
            None => part.into(),
        }
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self {
            start: 0,
            end: text.len(),
            whole: Arc::new(text),
        }
    }
}

impl From<&str> for SharedText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for SharedText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for SharedText {}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_shares_the_memory_of_the_whole() {
        let whole = SharedText::from("[{\"a\":1},{\"b\":2}]");
        let inner = whole.get(9..16).unwrap();
        let part = whole.part(inner);
        assert_eq!(part.as_str(), "{\"b\":2}");
        assert_eq!(part.as_ptr(), inner.as_ptr());
        let of_part = part.part(part.get(1..4).unwrap());
        assert_eq!(of_part.as_str(), "\"b\"");
        assert_eq!(of_part.as_ptr(), whole.get(10..).unwrap().as_ptr());
    }

    #[test]
    fn a_text_from_elsewhere_is_copied() {
        let whole = SharedText::from("whole");
        let elsewhere = "whole".to_owned();
        assert_eq!(whole.part(&elsewhere), whole);
        assert_ne!(whole.part(&elsewhere).as_ptr(), whole.as_ptr());
        assert_eq!(whole.part("").as_str(), "");
    }
}
