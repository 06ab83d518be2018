//! The lines of servers and tools in a lock file, for reports that point there.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolwarden_model::json::{Pointer, Position, Positions};
use toolwarden_store::ServerKey;

use crate::DEFAULT_SCOPE;

/// The lines of a lock file at which its servers and tools are named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockLines {
    servers: BTreeMap<ServerKey, usize>,
    tools: BTreeMap<ServerKey, BTreeMap<String, usize>>,
}

/// The members of a document that identify its server and tool.
#[derive(Deserialize)]
struct LockHeader<'d> {
    #[serde(borrow)]
    server: Option<Cow<'d, str>>,
    #[serde(borrow)]
    scope: Option<Cow<'d, str>>,
    #[serde(borrow)]
    tool: Option<Cow<'d, str>>,
}

impl LockLines {
    /// The lines in this text. Documents that are not valid have none.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut lines = Self::default();
        let mut documents = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let (mut counted, mut line) = (0, 1);
        while let Some(Ok(document)) = documents.next() {
            let end = documents.byte_offset();
            let start = end.saturating_sub(document.get().len());
            line += count_line_breaks(text, counted, start);
            counted = start;
            lines.add(document.get(), line);
        }
        lines
    }

    /// The line that names a tool, or else the one that names its server.
    #[must_use]
    pub fn tool(&self, server: &ServerKey, tool: &str) -> Option<usize> {
        let tools = self.tools.get(server);
        let line = tools.and_then(|tools| tools.get(tool)).copied();
        line.or_else(|| self.server(server))
    }

    /// The line that names a server.
    #[must_use]
    pub fn server(&self, server: &ServerKey) -> Option<usize> {
        self.servers.get(server).copied()
    }

    fn add(&mut self, document: &str, line: usize) {
        // Reading the file already reported what is wrong with it.
        let Ok(named) = serde_json::from_str::<LockHeader<'_>>(document) else {
            return;
        };
        let Some(name) = named.server else {
            return;
        };
        let key = ServerKey {
            name: name.into_owned(),
            scope: named
                .scope
                .map_or_else(|| DEFAULT_SCOPE.to_owned(), Cow::into_owned),
        };
        let at = |member: &str| {
            let Position { line: within, .. } =
                Positions::of(document).nearest(&Pointer::of([member]));
            line + within.saturating_sub(1)
        };
        match named.tool {
            Some(tool) => {
                let line = at("tool");
                let tools = self.tools.entry(key).or_default();
                tools.insert(tool.into_owned(), line);
            }
            None => {
                let line = at("server");
                self.servers.insert(key, line);
            }
        }
    }
}

fn count_line_breaks(text: &str, from: usize, to: usize) -> usize {
    let between = text.as_bytes().get(from..to).unwrap_or_default();
    between.iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_and_servers_are_found_at_their_lines() {
        let text = r#"{
  "schema": "toolwarden/lock/v1"
}

{
  "server": "shop",
  "scope": "default",
  "sealed": true
}

{
  "server": "shop",
  "scope": "default",
  "tool": "price",
  "definition": {
    "tool": "not this one"
  }
}

{
  "server": "shop",
  "tool": "buy"
}
"#;
        let key = |name: &str| ServerKey {
            name: name.to_owned(),
            scope: DEFAULT_SCOPE.to_owned(),
        };
        let lines = LockLines::of(text);
        assert_eq!(lines.server(&key("shop")), Some(6));
        assert_eq!(lines.tool(&key("shop"), "price"), Some(14));
        assert_eq!(lines.tool(&key("shop"), "buy"), Some(22));
        assert_eq!(lines.tool(&key("shop"), "new"), Some(6));
        assert_eq!(lines.tool(&key("other"), "price"), None);
        for (number, word) in [(6, "shop"), (14, "price"), (22, "buy")] {
            let line = text.lines().nth(number - 1);
            assert!(line.is_some_and(|line| line.contains(word)));
        }
        for broken in ["", "{", "[1, 2", "<<<<<<<", "{\"server\": 3}"] {
            assert_eq!(LockLines::of(broken), LockLines::default());
        }
    }
}
