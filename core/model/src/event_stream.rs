//! Server-sent events, read from chunks as they arrive.

use std::mem;
use std::time::Duration;

use thiserror::Error;

/// One event with data or an id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerSentEvent {
    /// The event's type; empty means `message`.
    pub name: String,
    /// Its data lines, joined by line feeds.
    pub data: Vec<u8>,
    /// The last id seen, for resuming.
    pub id: Option<String>,
    /// The reconnection delay that the server requests.
    pub retry: Option<Duration>,
}

/// An event or line is larger than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an event is larger than the limit")]
pub struct EventTooLarge;

/// A reader of server-sent events that buffers at most one unfinished event.
#[derive(Debug)]
pub struct EventReader {
    limit: usize,
    line: Vec<u8>,
    event: ServerSentEvent,
    has_data: bool,
    after_return: bool,
    at_start: bool,
}

impl EventReader {
    /// A new reader that buffers at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            event: ServerSentEvent::default(),
            has_data: false,
            after_return: false,
            at_start: true,
        }
    }

    /// Reads the next bytes and returns the events they complete.
    ///
    /// # Errors
    /// An event exceeds the limit.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<ServerSentEvent>, EventTooLarge> {
        let mut events = Vec::new();
        let mut rest = bytes;
        // CR LF is one line ending, even when a chunk ends between the two.
        if mem::take(&mut self.after_return) {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.after_return = bytes.is_empty();
        }
        while let Some(end) = memchr::memchr2(b'\r', b'\n', rest) {
            let (line, tail) = rest.split_at(end);
            self.append(line)?;
            let line = mem::take(&mut self.line);
            events.extend(self.finish_line(&line));
            rest = match tail {
                [b'\r', b'\n', after @ ..] => after,
                [b'\r'] => {
                    self.after_return = true;
                    &[]
                }
                [_, after @ ..] => after,
                [] => &[],
            };
        }
        self.append(rest)?;
        Ok(events)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        if self.line.len() + self.event.data.len() + bytes.len() > self.limit {
            return Err(EventTooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn finish_line(&mut self, line: &[u8]) -> Option<ServerSentEvent> {
        let mut line = line;
        if mem::take(&mut self.at_start) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if mem::replace(&mut self.has_data, true) {
                    self.event.data.push(b'\n');
                }
                self.event.data.extend_from_slice(value);
            }
            b"event" => self.event.name = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => {
                self.event.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => {
                let digits = str::from_utf8(value).ok();
                self.event.retry = digits
                    .and_then(|text| text.parse().ok())
                    .map(Duration::from_millis);
            }
            // Comments (an empty field name) keep the connection alive; other fields are reserved.
            _ => {}
        }
        None
    }

    /// Ends the event at an empty line. An event without data still carries its id and retry delay.
    fn dispatch(&mut self) -> Option<ServerSentEvent> {
        let event = mem::take(&mut self.event);
        let has_data = mem::take(&mut self.has_data);
        (has_data || event.id.is_some() || event.retry.is_some()).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b"\xef\xbb\xbf: hello\r\n\r\nevent: message\r\nid: 4\r\ndata: {\"a\":\r\ndata:  1}\r\n\r\nretry: 250\rdata\r\r:keep-alive\n\ndata:x\nbogus: y\n\ndata: unfinished";

    fn events() -> Vec<ServerSentEvent> {
        vec![
            ServerSentEvent {
                name: "message".to_owned(),
                data: b"{\"a\":\n 1}".to_vec(),
                id: Some("4".to_owned()),
                retry: None,
            },
            ServerSentEvent {
                retry: Some(Duration::from_millis(250)),
                ..ServerSentEvent::default()
            },
            ServerSentEvent {
                data: b"x".to_vec(),
                ..ServerSentEvent::default()
            },
        ]
    }

    #[test]
    fn every_split_gives_the_same_events() {
        for split in 0..=STREAM.len() {
            let (first, second) = STREAM.split_at(split);
            let mut reader = EventReader::new(1000);
            let mut got = reader.feed(first).unwrap();
            got.extend(reader.feed(b"").unwrap());
            got.extend(reader.feed(second).unwrap());
            assert_eq!(got, events(), "split at {split}");
        }
    }

    #[test]
    fn large_events_are_refused() {
        let mut reader = EventReader::new(10);
        assert_eq!(reader.feed(b"data: 1234\ndata: 12345"), Err(EventTooLarge));
    }
}
