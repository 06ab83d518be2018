use std::fmt;

use serde_json::{Map, Value};

/// The part of a result in which something was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// The whole result, if it is not an MCP result.
    Value,
    /// `structuredContent` of an MCP result.
    Structured,
    /// A text block that holds a JSON object or array.
    Json,
    /// Any other text block.
    Text,
    /// Image blocks.
    Image,
    /// Audio blocks.
    Audio,
    /// Embedded resources.
    Resource,
    /// Links to resources.
    ResourceLink,
    /// Blocks of a type this version does not know.
    Other,
    /// An MCP result without any content.
    Empty,
    /// A result with `isError`, whatever it holds.
    Error,
}

impl Channel {
    /// All channels, in the order of their numbers.
    pub(super) const ALL: [Self; 11] = [
        Self::Value,
        Self::Structured,
        Self::Json,
        Self::Text,
        Self::Image,
        Self::Audio,
        Self::Resource,
        Self::ResourceLink,
        Self::Other,
        Self::Empty,
        Self::Error,
    ];

    /// The word used in reports and files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Structured => "structured",
            Self::Json => "json",
            Self::Text => "text",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Resource => "resource",
            Self::ResourceLink => "resource_link",
            Self::Other => "other",
            Self::Empty => "empty",
            Self::Error => "error",
        }
    }

    fn of_block(kind: &str) -> Self {
        let named = [
            Self::Text,
            Self::Image,
            Self::Audio,
            Self::Resource,
            Self::ResourceLink,
        ];
        named
            .into_iter()
            .find(|channel| channel.as_str() == kind)
            .unwrap_or(Self::Other)
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The content observed in a channel.
pub(super) enum ChannelContent<'v> {
    /// A value of the result.
    Value(&'v Value),
    /// A value parsed from a text.
    Parsed(Value),
    /// A text that is not JSON.
    Plain(&'v str),
    /// Only the fact that the channel was used.
    Nothing,
}

/// A longer text is not parsed: parsing costs too much, and no model reads it.
const MAX_PARSED: usize = 1 << 20;

/// Splits a result into channels and passes on what to observe in each.
pub(super) fn split_channels<'v>(
    result: &'v Value,
    mut observe: impl FnMut(Channel, ChannelContent<'v>),
) {
    let Some(result) = CallResult::read(result) else {
        return observe(Channel::Value, ChannelContent::Value(result));
    };
    let to = |channel| {
        if result.is_error {
            Channel::Error
        } else {
            channel
        }
    };
    let mut empty = true;
    if let Some(structured) = result.structured {
        empty = false;
        observe(to(Channel::Structured), ChannelContent::Value(structured));
    }
    for block in result.content {
        empty = false;
        let kind = block
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match (Channel::of_block(kind), block.get("text")) {
            (Channel::Text, Some(Value::String(text))) => match parsed(text) {
                Some(value) => observe(to(Channel::Json), ChannelContent::Parsed(value)),
                None => observe(to(Channel::Text), ChannelContent::Plain(text)),
            },
            (channel, _) => observe(to(channel), ChannelContent::Value(block)),
        }
    }
    if empty {
        observe(to(Channel::Empty), ChannelContent::Nothing);
    }
}

fn parsed(text: &str) -> Option<Value> {
    let start = text.trim_start().bytes().next();
    let composite = matches!(start, Some(b'{' | b'[')) && text.len() <= MAX_PARSED;
    // Text that looks like JSON but does not parse is plain text; the reason does not matter.
    if composite {
        serde_json::from_str(text).ok()
    } else {
        None
    }
}

/// The members of an MCP `CallToolResult` that are read.
struct CallResult<'v> {
    content: &'v [Value],
    structured: Option<&'v Value>,
    is_error: bool,
}

impl<'v> CallResult<'v> {
    /// The result as MCP's, unless it is an object that merely has a member of the same name.
    fn read(result: &'v Value) -> Option<Self> {
        let members = result.as_object()?;
        let known = |name: &String| {
            matches!(
                name.as_str(),
                "content" | "structuredContent" | "isError" | "_meta"
            )
        };
        if !members.keys().all(known) {
            return None;
        }
        let content: &[Value] = match members.get("content") {
            Some(Value::Array(blocks)) if blocks.iter().all(is_block) => blocks,
            None => &[],
            Some(_) => return None,
        };
        let structured = members
            .get("structuredContent")
            .filter(|value| !value.is_null());
        let marked = structured.is_some() || members.contains_key("isError");
        let plain = members.contains_key("content") && content.iter().all(is_known_block);
        (marked || plain).then(|| Self {
            content,
            structured,
            is_error: is_true(members, "isError"),
        })
    }
}

fn is_true(members: &Map<String, Value>, name: &str) -> bool {
    members.get(name) == Some(&Value::Bool(true))
}

fn is_block(block: &Value) -> bool {
    block.get("type").is_some_and(Value::is_string)
}

fn is_known_block(block: &Value) -> bool {
    let kind = block.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| Channel::of_block(kind) != Channel::Other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn channels(result: &Value) -> Vec<String> {
        let mut seen = Vec::new();
        split_channels(result, |channel, part| {
            seen.push(match part {
                ChannelContent::Value(value) => format!("{channel} {value}"),
                ChannelContent::Parsed(value) => format!("{channel} parsed {value}"),
                ChannelContent::Plain(text) => format!("{channel} plain {text}"),
                ChannelContent::Nothing => format!("{channel} nothing"),
            });
        });
        seen
    }

    #[test]
    fn results_are_taken_apart() {
        for (result, expected) in [
            (json!(7), vec!["value 7"]),
            (json!({"content": "x"}), vec![r#"value {"content":"x"}"#]),
            (
                json!({"content": [{"type": "paragraph"}]}),
                vec![r#"value {"content":[{"type":"paragraph"}]}"#],
            ),
            (
                json!({"content": [], "title": "x"}),
                vec![r#"value {"content":[],"title":"x"}"#],
            ),
            (json!({"content": []}), vec!["empty nothing"]),
            (
                json!({"content": [], "isError": true}),
                vec!["error nothing"],
            ),
            (
                json!({"content": [{"type": "text", "text": "hi"}, {"type": "text", "text": " [1]"}], "structuredContent": {"a": 1}}),
                vec![r#"structured {"a":1}"#, "text plain hi", "json parsed [1]"],
            ),
            (
                json!({"content": [{"type": "text", "text": "no such file"}], "isError": true}),
                vec!["error plain no such file"],
            ),
            (
                json!({"content": [{"type": "video"}], "isError": false}),
                vec![r#"other {"type":"video"}"#],
            ),
            (
                json!({"content": [{"type": "text", "text": "{x"}]}),
                vec!["text plain {x"],
            ),
        ] {
            assert_eq!(channels(&result), expected, "{result}");
        }
    }
}
