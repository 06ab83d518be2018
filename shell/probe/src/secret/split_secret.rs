//! Keys that are split over several events: a stream may send one character of a key per event.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use super::redactor::{MASK, Redactor};

/// Members that say which of several texts a piece belongs to.
const INDEX_MEMBERS: [&[u8]; 5] = [
    b"index",
    b"output_index",
    b"content_index",
    b"summary_index",
    b"item_id",
];

impl Redactor {
    /// The body of a response with every secret masked, including keys that become whole only when
    /// the texts of events are joined. JSON stays JSON.
    #[must_use]
    pub fn redact_body(&self, body: &[u8]) -> Vec<u8> {
        let body = self.redact_bytes(body);
        if self.is_empty() {
            return body;
        }
        let mut cuts = self.ranges_to_remove(&body);
        if cuts.is_empty() {
            return body;
        }
        cuts.sort_by_key(|it| (it.place.start, it.place.end));
        let mut out = Vec::with_capacity(body.len());
        let mut copied = 0;
        for RemovedRange { place, is_first } in cuts {
            if place.end <= copied {
                continue;
            }
            let before = body.get(copied..place.start.max(copied));
            out.extend_from_slice(before.unwrap_or_default());
            if is_first {
                out.extend_from_slice(MASK);
            }
            copied = place.end;
        }
        out.extend_from_slice(body.get(copied..).unwrap_or_default());
        out
    }

    /// What to remove so that no joined texts contain a key.
    fn ranges_to_remove(&self, body: &[u8]) -> Vec<RemovedRange> {
        let pieces = json_texts(body);
        // Which pieces form a text depends on the wire and on the provider. Joining too many pieces
        // is harmless: either they contain a key or they do not.
        let channels: [fn(&JsonText) -> u64; 5] = [
            |it| hash((it.names, it.indexes)),
            |it| it.places,
            |it| it.names,
            |it| it.leaf,
            |_| 0,
        ];
        let mut cuts = Vec::new();
        for channel in channels {
            let mut sorted: Vec<&JsonText> = pieces.iter().collect();
            sorted.sort_by_cached_key(|it| channel(it));
            for joined in sorted.chunk_by(|a, b| channel(a) == channel(b)) {
                if joined.len() > 1 {
                    self.remove_joined(body, joined, &mut cuts);
                }
            }
        }
        cuts
    }

    fn remove_joined(&self, body: &[u8], pieces: &[&JsonText], cuts: &mut Vec<RemovedRange>) {
        let texts = pieces.iter().filter_map(|it| body.get(it.place.clone()));
        let text = texts.collect::<Vec<_>>().concat();
        let mut rest = pieces.iter();
        let (mut piece, mut begin) = (rest.next(), 0);
        for found in self.keys_in(&text) {
            let mut from = unescaped(&text, found.start);
            let mut is_first = true;
            while let Some(current) = piece {
                let end = begin + current.place.len();
                if from < end {
                    let to = found.end.min(end);
                    let shifted = |at: usize| current.place.start + at.saturating_sub(begin);
                    cuts.push(RemovedRange {
                        place: shifted(from)..shifted(to),
                        is_first,
                    });
                    (from, is_first) = (to, false);
                }
                if found.end <= end && from == found.end {
                    break;
                }
                begin = end;
                piece = rest.next();
            }
        }
    }
}

/// Bytes to remove; the first cut of each key leaves a mask.
struct RemovedRange {
    place: Range<usize>,
    is_first: bool,
}

/// A text in JSON, as it is written there.
struct JsonText {
    place: Range<usize>,
    /// The names on the path to it.
    names: u64,
    /// The names and positions on the path to it.
    places: u64,
    /// The last of the names.
    leaf: u64,
    /// The indexes named by members on the path to it; its container until all of it was read.
    indexes: u64,
    container: usize,
}

/// An object or a list.
struct JsonContainer {
    parent: Option<usize>,
    names: u64,
    places: u64,
    leaf: u64,
    indexes: u64,
}

/// A container that is being read.
struct OpenContainer {
    container: usize,
    is_object: bool,
    after_colon: bool,
    member: u64,
    is_index: bool,
    /// The value of an index, as far as it was read.
    scalar: u64,
    count: u64,
}

/// The texts of all JSON in a body, whatever is between them. Broken JSON is abandoned at the next
/// event.
fn json_texts(body: &[u8]) -> Vec<JsonText> {
    let mut reader = JsonTextReader::default();
    let mut at = 0;
    let mut is_blank = false;
    while let Some(byte) = body.get(at) {
        at += 1;
        match byte {
            b'\n' if is_blank => reader.open.clear(),
            b'\n' => is_blank = true,
            b'\r' => {}
            b'"' if !reader.open.is_empty() => {
                is_blank = false;
                let length = text_length(body.get(at..).unwrap_or_default());
                match body.get(at + length) {
                    Some(b'"') => reader.text(body, at..at + length),
                    _ => reader.open.clear(),
                }
                at += length + usize::from(body.get(at + length) == Some(&b'"'));
            }
            other => {
                is_blank = false;
                reader.read_structural(*other);
            }
        }
    }
    reader.finish()
}

#[derive(Default)]
struct JsonTextReader {
    pieces: Vec<JsonText>,
    containers: Vec<JsonContainer>,
    open: Vec<OpenContainer>,
}

impl JsonTextReader {
    fn read_structural(&mut self, byte: u8) {
        match byte {
            b'{' | b'[' => self.begin(byte == b'{'),
            b'}' | b']' => {
                self.end_of_member();
                self.open.pop();
            }
            b',' => self.end_of_member(),
            b':' => {
                if let Some(open) = self.open.last_mut() {
                    open.after_colon = true;
                }
            }
            b' ' | b'\t' => {}
            other => {
                if let Some(open) = self.open.last_mut().filter(|it| it.is_index) {
                    open.scalar = hash((open.scalar, other));
                }
            }
        }
    }

    fn begin(&mut self, is_object: bool) {
        let (names, places, leaf) = self.path_hashes();
        self.containers.push(JsonContainer {
            parent: self.open.last().map(|it| it.container),
            names,
            places,
            leaf,
            indexes: 0,
        });
        self.open.push(OpenContainer {
            container: self.containers.len() - 1,
            is_object,
            after_colon: false,
            member: 0,
            is_index: false,
            scalar: 0,
            count: 0,
        });
    }

    /// The path to the next value.
    fn path_hashes(&self) -> (u64, u64, u64) {
        let open = self.open.last();
        let within = open.and_then(|it| Some((it, self.containers.get(it.container)?)));
        match within {
            Some((open, it)) if open.is_object => (
                hash((it.names, open.member)),
                hash((it.places, open.member)),
                open.member,
            ),
            Some((open, it)) => (it.names, hash((it.places, open.count)), it.leaf),
            None => (0, 0, 0),
        }
    }

    fn text(&mut self, body: &[u8], place: Range<usize>) {
        let text = body.get(place.clone()).unwrap_or_default();
        let (names, places, leaf) = self.path_hashes();
        let Some(open) = self.open.last_mut() else {
            return;
        };
        if open.is_object && !open.after_colon {
            open.member = hash(text);
            open.is_index = INDEX_MEMBERS.contains(&text);
            return;
        }
        if open.is_index {
            open.scalar = hash(text);
        }
        self.pieces.push(JsonText {
            place,
            names,
            places,
            leaf,
            indexes: 0,
            container: open.container,
        });
    }

    fn end_of_member(&mut self) {
        let Some(open) = self.open.last_mut() else {
            return;
        };
        if open.is_index
            && let Some(container) = self.containers.get_mut(open.container)
        {
            // Members come in any order.
            let index = hash((open.member, open.scalar));
            container.indexes = container.indexes.wrapping_add(index);
        }
        open.after_colon = false;
        open.is_index = false;
        open.scalar = 0;
        open.count += 1;
    }

    fn finish(mut self) -> Vec<JsonText> {
        let mut indexes: Vec<u64> = Vec::with_capacity(self.containers.len());
        for container in &self.containers {
            let above = container.parent.and_then(|it| indexes.get(it)).copied();
            indexes.push(hash((above.unwrap_or_default(), container.indexes)));
        }
        for piece in &mut self.pieces {
            piece.indexes = indexes.get(piece.container).copied().unwrap_or_default();
        }
        self.pieces
    }
}

/// The length of a text, up to its closing quote or to where it is cut off.
fn text_length(bytes: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = bytes.iter().position(|byte| {
        let ends = matches!(byte, b'\n' | b'\r') || (*byte == b'"' && !is_escaped);
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    });
    end.unwrap_or(bytes.len())
}

/// A position, moved back by one if the character before it escapes it.
fn unescaped(text: &[u8], at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let escapes = before.iter().rev().take_while(|it| **it == b'\\').count();
    at - escapes % 2
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::secret::ApiKey;

    const KEY: &str = r#"sk-"Test/key\1234"#;

    fn redacted(events: &[Value]) -> String {
        let body: String = events.iter().map(|it| format!("data: {it}\n\n")).collect();
        let redactor = Redactor::new(ApiKey::new(KEY));
        String::from_utf8(redactor.redact_body(body.as_bytes())).unwrap()
    }

    fn events(body: &str) -> Vec<Value> {
        let data = body.lines().filter_map(|it| it.strip_prefix("data: "));
        data.map(|it| serde_json::from_str(it).unwrap()).collect()
    }

    /// The texts at a pointer, joined.
    fn joined(events: &[Value], pointer: &str) -> String {
        let texts = events.iter().filter_map(|it| it.pointer(pointer)?.as_str());
        texts.collect()
    }

    #[test]
    fn a_key_in_pieces_goes_wherever_the_wire_puts_them() {
        type Event = fn(&str) -> Value;
        let shapes: [(&str, Event); 6] = [
            (
                "/choices/0/delta/content",
                |it| json!({"id": "x", "choices": [{"delta": {"content": it}, "index": 0}]}),
            ),
            (
                "/choices/0/delta/reasoning_content",
                |it| json!({"choices": [{"delta": {"reasoning_content": it}}]}),
            ),
            (
                "/choices/0/delta/tool_calls/0/function/arguments",
                |it| json!({"choices": [{"delta": {"tool_calls": [{"function": {"arguments": it}, "index": 1}]}}]}),
            ),
            (
                "/delta/partial_json",
                |it| json!({"type": "content_block_delta", "index": 2, "delta": {"partial_json": it}}),
            ),
            (
                "/candidates/0/content/parts/0/text",
                |it| json!({"candidates": [{"content": {"parts": [{"text": it}]}}]}),
            ),
            (
                "/delta",
                |it| json!({"type": "x.delta", "item_id": it.len(), "delta": it}),
            ),
        ];
        for (pointer, event) in shapes {
            for size in [1, 2, 7, 12] {
                let text: Vec<char> = format!("it is {KEY}, no?").chars().collect();
                let pieces = text.chunks(size).map(|it| it.iter().collect::<String>());
                let sent: Vec<Value> = pieces.map(|it| event(&it)).collect();
                let kept = events(&redacted(&sent));
                assert_eq!(kept.len(), sent.len());
                assert_eq!(joined(&kept, pointer), "it is ***, no?", "{pointer} {size}");
            }
        }
    }

    #[test]
    fn interleaved_calls_are_separated() {
        let piece = |index: u32, text: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]});
        let (head, tail) = KEY.split_at(6);
        let sent = [
            piece(0, head),
            piece(1, "{\"a\""),
            piece(0, tail),
            piece(1, ":1}"),
        ];
        let kept = [
            piece(0, "***"),
            piece(1, "{\"a\""),
            piece(0, ""),
            piece(1, ":1}"),
        ];
        assert_eq!(events(&redacted(&sent)), kept);
    }

    #[test]
    fn parts_of_one_document_are_joined_too() {
        let (head, tail) = KEY.split_at(6);
        let body = json!({"content": [{"text": head, "type": "t"}, {"text": tail, "type": "t"}]});
        let redactor = Redactor::new(ApiKey::new(KEY));
        let kept = redactor.redact_body(body.to_string().as_bytes());
        let kept: Value = serde_json::from_slice(&kept).unwrap();
        let expected =
            json!({"content": [{"text": "***", "type": "t"}, {"text": "", "type": "t"}]});
        assert_eq!(kept, expected);
    }

    #[test]
    fn what_is_no_json_does_not_hide_what_is() {
        let body = format!(
            ": \"\nevent: {{\n\ndata: {{\"a\": \"broken\n\ndata: {{\"a\":\"{}\"}}\r\n\r\ndata: {{\"a\":\"{}\"}}\n\n",
            "key-0", "12345"
        );
        let redactor = Redactor::new(ApiKey::new("Key-012345"));
        let kept = redactor.redact_body(body.as_bytes());
        let expected = body.replace("key-0", "***").replace("12345", "");
        assert_eq!(String::from_utf8(kept).unwrap(), expected);
        let deep = "[".repeat(1 << 20);
        assert_eq!(redactor.redact_body(deep.as_bytes()), deep.as_bytes());
    }

    proptest! {
        #[test]
        fn no_split_leaves_a_key(
            before in "[ -~]{0,12}",
            after in "[ -~]{0,12}",
            cuts in prop::collection::vec(1..6_usize, 1..40),
        ) {
            let mut rest: Vec<char> = format!("{before}{KEY}{after}").chars().collect();
            let mut sent = Vec::new();
            for cut in cuts {
                let piece: String = rest.drain(..cut.min(rest.len())).collect();
                sent.push(json!({"id": "chunk", "text": piece}));
            }
            sent.push(json!({"id": "chunk", "text": rest.into_iter().collect::<String>()}));
            let kept = events(&redacted(&sent));
            prop_assert_eq!(kept.len(), sent.len());
            let text = joined(&kept, "/text");
            prop_assert!(!text.contains(KEY), "{}", text);
            prop_assert!(text.contains("***"), "{}", text);
        }

        #[test]
        fn what_holds_no_key_stays(body in "[\\[\\]{}:,\"\\\\a-d \\n]{0,80}") {
            let redactor = Redactor::new(ApiKey::new(KEY));
            prop_assert_eq!(redactor.redact_body(body.as_bytes()), body.as_bytes());
        }
    }
}
