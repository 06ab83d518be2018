use std::fmt;

use super::Value;

/// An RFC 6901 JSON pointer, stored in its escaped text form.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(String);

impl Pointer {
    /// The pointer to the whole document.
    #[must_use]
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// The pointer made of the given unescaped segments.
    #[must_use]
    pub fn of<'a>(segments: impl IntoIterator<Item = &'a str>) -> Self {
        let mut pointer = Self::root();
        for segment in segments {
            pointer.push(segment);
        }
        pointer
    }

    /// Appends one unescaped segment.
    pub fn push(&mut self, segment: &str) {
        self.0.push('/');
        for c in segment.chars() {
            match c {
                '~' => self.0.push_str("~0"),
                '/' => self.0.push_str("~1"),
                _ => self.0.push(c),
            }
        }
    }

    /// Removes the last segment; the root stays the root.
    pub fn pop(&mut self) {
        if let Some(at) = self.0.rfind('/') {
            self.0.truncate(at);
        }
    }

    /// This pointer with one more unescaped segment.
    #[must_use]
    pub fn child(&self, segment: &str) -> Self {
        let mut child = self.clone();
        child.push(segment);
        child
    }

    /// This pointer with one more array index.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.child(&index.to_string())
    }

    /// This pointer followed by another.
    #[must_use]
    pub fn join(&self, rest: &Self) -> Self {
        let mut joined = self.clone();
        joined.0.push_str(&rest.0);
        joined
    }

    /// The escaped text, empty for the root.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The unescaped segments.
    pub fn segments(&self) -> impl Iterator<Item = String> + '_ {
        self.0
            .split('/')
            .skip(1)
            .map(|segment| segment.replace("~1", "/").replace("~0", "~"))
    }

    /// The value this pointer leads to.
    #[must_use]
    pub fn find<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        document.pointer(&self.0)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "/" } else { &self.0 })
    }
}

impl From<&str> for Pointer {
    /// Takes text that is already an escaped pointer.
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// Decodes the percent-encoding of a URI fragment.
#[must_use]
pub fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let high = char::from(rest.next()?).to_digit(16)?;
        let low = char::from(rest.next()?).to_digit(16)?;
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_escaped_and_come_back() {
        let pointer = Pointer::of(["properties", "a/b~c", ""]);
        assert_eq!(pointer.as_str(), "/properties/a~1b~0c/");
        assert_eq!(
            pointer.segments().collect::<Vec<_>>(),
            ["properties", "a/b~c", ""]
        );
    }

    #[test]
    fn pop_undoes_push() {
        let mut pointer = Pointer::of(["a"]);
        pointer.push("b/c");
        pointer.pop();
        assert_eq!(pointer, Pointer::of(["a"]));
        pointer.pop();
        pointer.pop();
        assert_eq!(pointer, Pointer::root());
    }
}
