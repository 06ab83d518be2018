use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::json::{Map, Pointer, Position, Value};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};

use super::scalar::{self, PlainScalar};
use super::{DocumentError, DocumentErrorKind as Kind};

/// The maximum nesting depth, aliases included.
pub(super) const MAX_DEPTH: usize = 100;

/// The maximum number of values, aliases included.
pub(super) const MAX_NODES: usize = 1_000_000;

/// The maximum text size, aliases included: few values can still contain long texts.
pub(super) const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The position of a value and of everything in it.
///
/// This is a tree, because a table of pointers would repeat every long key for all values under it.
#[derive(Clone, Debug)]
pub(super) struct PositionTree {
    position: Position,
    children: PositionChildren,
}

#[derive(Clone, Debug)]
enum PositionChildren {
    /// A scalar, or an alias: the parts of an alias are elsewhere, so the alias is the nearest
    /// position to show.
    Nothing,
    Items(Vec<PositionTree>),
    Members(BTreeMap<String, PositionTree>),
}

/// Reads one YAML document.
pub(super) fn read(text: &str) -> Result<(Value, PositionTree), DocumentError> {
    let mut parser = Parser::new_from_str(text);
    let mut builder = Builder::default();
    // The parser's own `load` recurses on nested input; its event interface is a plain state
    // machine.
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| syntax_error(&error))?;
        let position = position(span.start);
        builder
            .handle_event(event, position)
            .map_err(|kind| DocumentError { position, kind })?;
    }
    builder.root.ok_or(DocumentError {
        position: Position { line: 1, column: 1 },
        kind: Kind::Empty,
    })
}

impl PositionTree {
    /// The position that a pointer leads to, or that of its nearest existing ancestor.
    pub(super) fn nearest(&self, pointer: &Pointer) -> Position {
        let mut place = self;
        for segment in pointer.segments() {
            let inner = match &place.children {
                PositionChildren::Nothing => None,
                PositionChildren::Items(items) => {
                    segment.parse().ok().and_then(|i: usize| items.get(i))
                }
                PositionChildren::Members(members) => members.get(&segment),
            };
            let Some(inner) = inner else { break };
            place = inner;
        }
        place.position
    }

    const fn leaf(position: Position) -> Self {
        Self {
            position,
            children: PositionChildren::Nothing,
        }
    }
}

/// The size of a value with its aliases expanded.
#[derive(Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

impl Size {
    const fn of_scalar(text: &str) -> Self {
        Self {
            nodes: 1,
            bytes: text.len(),
            depth: 0,
        }
    }

    fn grow(&mut self, more: Self) -> Result<(), Kind> {
        self.nodes += more.nodes;
        self.bytes += more.bytes;
        if self.nodes > MAX_NODES || self.bytes > MAX_BYTES {
            return Err(Kind::TooLarge);
        }
        Ok(())
    }
}

/// Builds the value from the parser's events, with an explicit stack instead of recursion.
#[derive(Default)]
struct Builder {
    open: Vec<Collection>,
    anchors: BTreeMap<usize, (Value, Size)>,
    total: Size,
    /// The size of the copies kept for aliases.
    anchored: Size,
    root: Option<(Value, PositionTree)>,
}

/// A list or mapping whose end has not been read yet.
struct Collection {
    position: Position,
    anchor: usize,
    content: Content,
    size_before: Size,
    depth_inside: usize,
}

enum Content {
    List(Vec<Value>, Vec<PositionTree>),
    Mapping {
        map: Map<String, Value>,
        places: BTreeMap<String, PositionTree>,
        key: Option<(String, Position)>,
    },
}

impl Builder {
    fn handle_event(&mut self, event: Event<'_>, position: Position) -> Result<(), Kind> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => Err(Kind::SeveralDocuments),
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(anchor) => self.alias(anchor, position),
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(text, style, anchor, tag.as_deref(), position)
            }
            Event::SequenceStart(anchor, tag) => {
                expect_tag(tag.as_deref(), "seq")?;
                self.begin(anchor, position, Content::List(Vec::new(), Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                expect_tag(tag.as_deref(), "map")?;
                let content = Content::Mapping {
                    map: Map::new(),
                    places: BTreeMap::new(),
                    key: None,
                };
                self.begin(anchor, position, content)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        position: Position,
    ) -> Result<(), Kind> {
        let size = Size::of_scalar(&text);
        self.total.grow(size)?;
        let plain = style == ScalarStyle::Plain;
        if self.expects_key() {
            let key = key(text, plain, tag)?;
            return self.begin_member(key, position);
        }
        if self.open.is_empty() && plain && text.is_empty() && tag.is_none() {
            return Err(Kind::Empty);
        }
        let value = scalar_value(text, plain, tag)?;
        self.add(value, PositionTree::leaf(position), anchor, size)
    }

    fn alias(&mut self, anchor: usize, position: Position) -> Result<(), Kind> {
        if self.expects_key() {
            return Err(Kind::KeyNotText);
        }
        let (value, size) = self.anchors.get(&anchor).ok_or(Kind::AliasInsideAnchor)?;
        let size = *size;
        if self.open.len() + size.depth > MAX_DEPTH {
            return Err(Kind::TooDeep);
        }
        // Counted before it is copied, so that no text causes copies beyond the limit.
        self.total.grow(size)?;
        let value = value.clone();
        self.add(value, PositionTree::leaf(position), 0, size)
    }

    fn begin(&mut self, anchor: usize, position: Position, content: Content) -> Result<(), Kind> {
        if self.expects_key() {
            return Err(Kind::KeyNotText);
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(Kind::TooDeep);
        }
        let before = self.total;
        self.total.grow(Size::of_scalar(""))?;
        self.open.push(Collection {
            position,
            anchor,
            content,
            size_before: before,
            depth_inside: 0,
        });
        Ok(())
    }

    fn begin_member(&mut self, name: String, position: Position) -> Result<(), Kind> {
        let Some(Content::Mapping { map, key, .. }) = self.innermost() else {
            return Ok(());
        };
        if map.contains_key(&name) {
            return Err(Kind::DuplicateKey { key: name });
        }
        *key = Some((name, position));
        Ok(())
    }

    fn end(&mut self) -> Result<(), Kind> {
        let Some(collection) = self.open.pop() else {
            return Ok(());
        };
        let size = Size {
            nodes: self.total.nodes - collection.size_before.nodes,
            bytes: self.total.bytes - collection.size_before.bytes,
            depth: collection.depth_inside + 1,
        };
        let (value, inside) = match collection.content {
            Content::List(items, places) => (Value::Array(items), PositionChildren::Items(places)),
            Content::Mapping { map, places, .. } => {
                (Value::Object(map), PositionChildren::Members(places))
            }
        };
        let place = PositionTree {
            position: collection.position,
            children: inside,
        };
        self.add(value, place, collection.anchor, size)
    }

    /// Adds a finished value to the innermost collection, or sets it as the root.
    fn add(
        &mut self,
        value: Value,
        mut place: PositionTree,
        anchor: usize,
        size: Size,
    ) -> Result<(), Kind> {
        if anchor != 0 {
            self.anchored.grow(size)?;
            self.anchors.insert(anchor, (value.clone(), size));
        }
        let Some(collection) = self.open.last_mut() else {
            self.root = Some((value, place));
            return Ok(());
        };
        collection.depth_inside = collection.depth_inside.max(size.depth);
        match &mut collection.content {
            Content::List(values, places) => {
                values.push(value);
                places.push(place);
            }
            Content::Mapping { map, places, key } => {
                if let Some((name, position)) = key.take() {
                    place.position = position;
                    places.insert(name.clone(), place);
                    map.insert(name, value);
                }
            }
        }
        Ok(())
    }

    fn expects_key(&mut self) -> bool {
        matches!(self.innermost(), Some(Content::Mapping { key: None, .. }))
    }

    fn innermost(&mut self) -> Option<&mut Content> {
        self.open
            .last_mut()
            .map(|collection| &mut collection.content)
    }
}

/// The text of a key. Integers and booleans become their text: `8080:` is the key `"8080"`.
fn key(text: Cow<'_, str>, plain: bool, tag: Option<&Tag>) -> Result<String, Kind> {
    if plain && tag.is_none() && text == "<<" {
        return Err(Kind::MergeKey);
    }
    let written = text.to_string();
    match scalar_value(text, plain, tag)? {
        Value::String(text) => Ok(text),
        Value::Bool(_) => Ok(written),
        Value::Number(_) if !written.contains('.') && !scalar::has_exponent(&written) => {
            Ok(written)
        }
        Value::Number(_) | Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(Kind::KeyNotText)
        }
    }
}

fn scalar_value(text: Cow<'_, str>, plain: bool, tag: Option<&Tag>) -> Result<Value, Kind> {
    let Some(tag) = tag else {
        return match plain {
            true => Ok(scalar::parse_plain_scalar(&text)?.into_value(text.into_owned())),
            false => Ok(Value::String(text.into_owned())),
        };
    };
    let fits = match core_tag(tag)? {
        "str" => return Ok(Value::String(text.into_owned())),
        "null" => |plain: &PlainScalar| matches!(plain, PlainScalar::Null),
        "bool" => |plain: &PlainScalar| matches!(plain, PlainScalar::Bool(_)),
        "int" => |plain: &PlainScalar| matches!(plain, PlainScalar::Int(_)),
        "float" => {
            |plain: &PlainScalar| matches!(plain, PlainScalar::Int(_) | PlainScalar::Float(_))
        }
        _ => return Err(Kind::TagMismatch { tag: tag_text(tag) }),
    };
    let plain = scalar::parse_plain_scalar(&text)?;
    if !fits(&plain) {
        return Err(Kind::TagMismatch { tag: tag_text(tag) });
    }
    Ok(plain.into_value(text.into_owned()))
}

fn expect_tag(tag: Option<&Tag>, expected: &str) -> Result<(), Kind> {
    match tag {
        Some(tag) if core_tag(tag)? != expected => Err(Kind::TagMismatch { tag: tag_text(tag) }),
        _ => Ok(()),
    }
}

/// The name of a core schema tag.
fn core_tag(tag: &Tag) -> Result<&str, Kind> {
    let name = tag.suffix.as_str();
    let core = ["str", "null", "bool", "int", "float", "seq", "map"];
    if tag.is_yaml_core_schema() && core.contains(&name) {
        return Ok(name);
    }
    Err(Kind::UnknownTag { tag: tag_text(tag) })
}

fn tag_text(tag: &Tag) -> String {
    let handle = match tag.is_yaml_core_schema() {
        true => "!!",
        false => tag.handle.as_str(),
    };
    format!("{handle}{}", tag.suffix)
}

fn syntax_error(error: &ScanError) -> DocumentError {
    // The scanner looks ahead, so it may reach its own limit before ours.
    let kind = match error.info() {
        "recursion limit exceeded" => Kind::TooDeep,
        message => Kind::Syntax {
            message: message.to_owned(),
        },
    };
    DocumentError {
        position: position(*error.marker()),
        kind,
    }
}

/// The parser counts columns from zero.
fn position(marker: Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}
