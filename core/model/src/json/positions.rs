//! A second pass over a text that is known to be valid JSON, to find positions in it.

use std::collections::{BTreeMap, BTreeSet};

use super::Pointer;

/// A position in a text, counted from one; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// A duplicate key in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The duplicate member.
    pub pointer: Pointer,
    /// Where the later one starts.
    pub position: Position,
}

impl Position {
    /// The position right after the given text.
    #[must_use]
    pub fn after(text: &str) -> Self {
        let line = text.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let column = text
            .rsplit('\n')
            .next()
            .map_or(0, |last| last.chars().count())
            + 1;
        Self { line, column }
    }

    /// Converts a position relative to this one into a position in the whole text.
    #[must_use]
    pub const fn offset_by(self, further: Self) -> Self {
        let column = if further.line == 1 {
            self.column + further.column - 1
        } else {
            further.column
        };
        Self {
            line: self.line + further.line - 1,
            column,
        }
    }
}

/// The positions of everything in a valid JSON text: values, or the keys that lead to them.
#[derive(Clone, Debug, Default)]
pub struct Positions(BTreeMap<Pointer, Position>);

impl Positions {
    /// Scans the text once.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut scanner = Scanner::new(text);
        let mut positions = BTreeMap::new();
        let (mut reached, mut position) = (0, Position { line: 1, column: 1 });
        while let Some(token) = scanner.next() {
            if matches!(token.kind, TokenKind::Key) || scanner.at_element_or_root(&token) {
                let passed = text.get(reached..token.offset).unwrap_or_default();
                position = position.offset_by(Position::after(passed));
                reached = token.offset;
                positions.insert(scanner.path(&token), position);
            }
        }
        Self(positions)
    }

    /// The position that a pointer leads to, or that of its nearest existing ancestor.
    #[must_use]
    pub fn nearest(&self, pointer: &Pointer) -> Position {
        let mut pointer = pointer.clone();
        loop {
            if let Some(position) = self.0.get(&pointer) {
                return *position;
            }
            if pointer == Pointer::root() {
                return Position { line: 1, column: 1 };
            }
            pointer.pop();
        }
    }
}

/// Every duplicate key in a valid JSON text.
pub(super) fn duplicate_keys(text: &str) -> Vec<DuplicateKey> {
    let mut scanner = Scanner::new(text);
    let mut seen: Vec<BTreeSet<String>> = Vec::new();
    let mut found = Vec::new();
    let (mut reached, mut position) = (0, Position { line: 1, column: 1 });
    while let Some(token) = scanner.next() {
        match token.kind {
            TokenKind::Open => seen.push(BTreeSet::new()),
            TokenKind::Close => {
                seen.pop();
            }
            TokenKind::Key => {
                let new = seen.last_mut().is_some_and(|keys| keys.insert(token.key()));
                if !new {
                    let passed = text.get(reached..token.offset).unwrap_or_default();
                    position = position.offset_by(Position::after(passed));
                    reached = token.offset;
                    found.push(DuplicateKey {
                        pointer: scanner.path(&token),
                        position,
                    });
                }
            }
            TokenKind::Scalar => {}
        }
    }
    found
}

/// The texts of all numbers of a valid JSON text, in document order.
pub(super) fn numbers(text: &str) -> Vec<&str> {
    let mut scanner = Scanner::new(text);
    let mut found = Vec::new();
    while let Some(token) = scanner.next() {
        if token
            .text
            .starts_with(|c: char| c == '-' || c.is_ascii_digit())
        {
            found.push(token.text);
        }
    }
    found
}

#[derive(Clone, Copy, PartialEq)]
enum TokenKind {
    Open,
    Close,
    Key,
    Scalar,
}

struct ScanToken<'t> {
    kind: TokenKind,
    offset: usize,
    text: &'t str,
}

impl ScanToken<'_> {
    fn key(&self) -> String {
        serde_json::from_str(self.text).unwrap_or_default()
    }
}

enum Frame {
    Object { key: String },
    Array { index: usize },
}

/// Walks the tokens of valid JSON without recursion.
struct Scanner<'t> {
    text: &'t str,
    offset: usize,
    frames: Vec<Frame>,
    expects_key: bool,
}

impl<'t> Scanner<'t> {
    const fn new(text: &'t str) -> Self {
        Self {
            text,
            offset: 0,
            frames: Vec::new(),
            expects_key: false,
        }
    }

    fn byte(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(offset).copied()
    }

    fn next(&mut self) -> Option<ScanToken<'t>> {
        loop {
            let start = self.offset;
            let byte = self.byte(start)?;
            self.offset += 1;
            match byte {
                b'{' => {
                    self.frames.push(Frame::Object { key: String::new() });
                    self.expects_key = true;
                    return Some(self.token(TokenKind::Open, start));
                }
                b'[' => {
                    self.frames.push(Frame::Array { index: 0 });
                    self.expects_key = false;
                    return Some(self.token(TokenKind::Open, start));
                }
                b'}' | b']' => {
                    self.frames.pop();
                    self.expects_key = false;
                    return Some(self.token(TokenKind::Close, start));
                }
                b',' => self.advance_frame(),
                b'"' => return Some(self.string(start)),
                b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                    while self.byte(self.offset).is_some_and(is_scalar_byte) {
                        self.offset += 1;
                    }
                    return Some(self.token(TokenKind::Scalar, start));
                }
                _ => {}
            }
        }
    }

    fn advance_frame(&mut self) {
        match self.frames.last_mut() {
            Some(Frame::Array { index }) => *index += 1,
            Some(Frame::Object { .. }) => self.expects_key = true,
            None => {}
        }
    }

    fn string(&mut self, start: usize) -> ScanToken<'t> {
        while let Some(byte) = self.byte(self.offset) {
            self.offset += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                break;
            }
        }
        if !self.expects_key {
            return self.token(TokenKind::Scalar, start);
        }
        self.expects_key = false;
        let token = self.token(TokenKind::Key, start);
        if let Some(Frame::Object { key }) = self.frames.last_mut() {
            *key = token.key();
        }
        token
    }

    fn token(&self, kind: TokenKind, start: usize) -> ScanToken<'t> {
        ScanToken {
            kind,
            offset: start,
            text: self.text.get(start..self.offset).unwrap_or_default(),
        }
    }

    /// Whether the token starts the root value or an array element.
    fn at_element_or_root(&self, token: &ScanToken<'_>) -> bool {
        let enclosing = match token.kind {
            TokenKind::Open => self
                .frames
                .len()
                .checked_sub(2)
                .and_then(|at| self.frames.get(at)),
            TokenKind::Scalar => self.frames.last(),
            TokenKind::Key | TokenKind::Close => return false,
        };
        let root = self.frames.len() <= usize::from(token.kind == TokenKind::Open);
        root || matches!(enclosing, Some(Frame::Array { .. }))
    }

    fn path(&self, token: &ScanToken<'_>) -> Pointer {
        let depth = self.frames.len() - usize::from(token.kind == TokenKind::Open);
        let mut pointer = Pointer::root();
        for frame in self.frames.iter().take(depth) {
            match frame {
                Frame::Object { key } => pointer.push(key),
                Frame::Array { index } => pointer.push(&index.to_string()),
            }
        }
        pointer
    }
}

const fn is_scalar_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_located_at_their_key_or_element() {
        let text = "{\n  \"a\": [1, {\"b/c\": \"é\"}],\n  \"é\": {\"x\": 1}, \"y\": 2\n}";
        let positions = Positions::of(text);
        let at = |pointer: &str| {
            let position = positions.nearest(&Pointer::from(pointer));
            (position.line, position.column)
        };
        assert_eq!(at(""), (1, 1));
        assert_eq!(at("/a"), (2, 3));
        assert_eq!(at("/a/0"), (2, 9));
        assert_eq!(at("/a/1"), (2, 12));
        assert_eq!(at("/a/1/b~1c"), (2, 13));
        assert_eq!(at("/é/x"), (3, 9));
        assert_eq!(at("/y"), (3, 18));
        assert_eq!(at("/a/1/nowhere/at/all"), (2, 12));
    }

    #[test]
    fn numbers_are_found_in_order_and_not_in_strings() {
        assert_eq!(numbers(r#"{"1":-2,"a":[3e4,"5"],"b":true}"#), ["-2", "3e4"]);
    }
}
