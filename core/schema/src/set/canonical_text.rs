use std::collections::HashMap;
use std::fmt::Write as _;

use super::arena::{Arena, Fact, NodeId};

/// The most nodes that are written out.
const MAX_NODES: usize = 100_000;

impl Arena {
    /// A text that is equal for schemas that reduce to the same facts, whatever the order and the
    /// names they are written with; `None` if it would grow too large.
    pub(crate) fn canonical_text(&self, root: NodeId) -> Option<String> {
        let mut writer = Writer {
            arena: self,
            known: HashMap::new(),
            path: Vec::new(),
            nodes: 0,
        };
        writer.text(root).map(|(text, _)| text)
    }
}

struct Writer<'a> {
    arena: &'a Arena,
    known: HashMap<NodeId, String>,
    /// The definitions whose bodies are being written, outermost first.
    path: Vec<usize>,
    nodes: usize,
}

impl Writer<'_> {
    /// The text of a node, and whether it refers to a body that is being written.
    fn text(&mut self, id: NodeId) -> Option<(String, bool)> {
        if let Some(known) = self.known.get(&id) {
            return Some((known.clone(), false));
        }
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return None;
        }
        let arena = self.arena;
        let (text, refers) = match arena.node(id) {
            Fact::Definition(number) => return self.definition(*number),
            Fact::All(parts) => self.combined("all", parts)?,
            Fact::Any(parts) => self.combined("any", parts)?,
            Fact::One(parts) => self.combined("one", parts)?,
            Fact::Not(inner) => self.combined("not", &[*inner])?,
            Fact::Names(names) => self.combined("names", &[*names])?,
            Fact::Contains { schema, min, max } => {
                self.combined(&format!("contains {min} {max:?}"), &[*schema])?
            }
            Fact::Items { prefix, rest } => {
                let mut refers = false;
                let mut text = String::from("(items");
                for part in prefix.iter().chain([rest]) {
                    let (part, inner) = self.text(*part)?;
                    refers |= inner;
                    write!(text, " {part}").ok()?;
                }
                text.push(')');
                (text, refers)
            }
            Fact::Properties(properties) => {
                let mut refers = false;
                let mut text = String::from("(properties");
                for (name, part) in &properties.named {
                    let (part, inner) = self.text(*part)?;
                    refers |= inner;
                    write!(text, " {name:?} {part}").ok()?;
                }
                for (pattern, part) in &properties.patterns {
                    let (part, inner) = self.text(*part)?;
                    refers |= inner;
                    write!(text, " /{pattern:?}/ {part}").ok()?;
                }
                let (rest, inner) = self.text(properties.rest)?;
                write!(text, " * {rest})").ok()?;
                (text, refers || inner)
            }
            plain => (format!("({plain:?})"), false),
        };
        if !refers {
            self.known.insert(id, text.clone());
        }
        Some((text, refers))
    }

    /// Parts whose order does not matter.
    fn combined(&mut self, word: &str, parts: &[NodeId]) -> Option<(String, bool)> {
        let mut refers = false;
        let mut texts = Vec::with_capacity(parts.len());
        for part in parts {
            let (text, inner) = self.text(*part)?;
            refers |= inner;
            texts.push(text);
        }
        texts.sort_unstable();
        Some((format!("({word} {})", texts.join(" ")), refers))
    }

    /// A definition inside its own body is named by how far out the body begins.
    fn definition(&mut self, number: usize) -> Option<(String, bool)> {
        if let Some(at) = self.path.iter().rposition(|open| *open == number) {
            return Some((format!("(up {})", self.path.len() - at), true));
        }
        let body = self.arena.definition(number)?;
        self.path.push(number);
        let text = self.text(body);
        self.path.pop();
        let (text, _) = text?;
        // What the body refers to may lie further out; it is written again where it occurs.
        Some((format!("(rec {text})"), true))
    }
}
