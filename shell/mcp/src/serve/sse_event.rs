//! Server-sent events as text.

use std::fmt::Write as _;
use std::time::Duration;

/// One event to send.
#[derive(Debug, Clone, Copy, Default)]
pub struct SseEvent<'a> {
    /// The id that a client names to resume after this event.
    pub id: Option<&'a str>,
    /// The kind of event; absent means `message`.
    pub name: Option<&'a str>,
    /// How long a client waits before it reconnects.
    pub retry: Option<Duration>,
    /// The data, which may have several lines.
    pub data: &'a str,
}

impl SseEvent<'_> {
    /// The event, including its terminating empty line.
    #[must_use]
    pub fn text(&self) -> String {
        let Self {
            id,
            name,
            retry,
            data,
        } = *self;
        let names = id.map_or(0, str::len) + name.map_or(0, str::len);
        let mut text = String::with_capacity(data.len() + names + 64);
        if let Some(name) = name {
            field(&mut text, "event", name);
        }
        if let Some(id) = id {
            field(&mut text, "id", id);
        }
        if let Some(retry) = retry {
            // Writing to a string cannot fail.
            let _written = writeln!(text, "retry: {}", retry.as_millis());
        }
        for line in lines(data) {
            text.push_str("data: ");
            text.push_str(line);
            text.push('\n');
        }
        text.push('\n');
        text
    }
}

/// A comment, which keeps a connection alive and carries no data.
#[must_use]
pub fn comment(words: &str) -> String {
    let mut text = String::with_capacity(words.len() + 4);
    for line in lines(words) {
        text.push_str(": ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text
}

/// A field of one line. A line break or a NUL in it would end or invalidate the field.
fn field(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push_str(": ");
    text.extend(
        value
            .chars()
            .filter(|char| !matches!(char, '\n' | '\r' | '\0')),
    );
    text.push('\n');
}

/// The lines of a text as event readers see them: CR, LF and CR LF all end a line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        line.split('\r')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwarden_model::event_stream::EventReader;

    #[test]
    fn events_are_written() {
        let event = SseEvent {
            id: Some("s\n-1"),
            name: Some("message"),
            retry: Some(Duration::from_millis(1500)),
            data: "{\r\n\"a\":\r1\n}",
        };
        assert_eq!(
            event.text(),
            "event: message\nid: s-1\nretry: 1500\ndata: {\ndata: \"a\":\ndata: 1\ndata: }\n\n"
        );
        assert_eq!(SseEvent::default().text(), "data: \n\n");
        assert_eq!(comment("ping\nx"), ": ping\n: x\n\n");
    }

    #[test]
    fn what_is_written_is_read() {
        for data in ["{}", "{\n \"a\" : 1\n}", " {}", ""] {
            let text = SseEvent {
                id: Some("7"),
                data,
                ..SseEvent::default()
            }
            .text();
            let events = EventReader::new(1000).feed(text.as_bytes()).unwrap();
            let [event] = events.as_slice() else {
                panic!("{events:?}");
            };
            assert_eq!(event.data, data.as_bytes());
            assert_eq!(event.id.as_deref(), Some("7"));
        }
    }
}
