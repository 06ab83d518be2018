use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::json::{Map, Pointer, Position, Value};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};

use super::scalar::{self, Plain};
use super::{DocumentError, DocumentErrorKind as Kind};

/// The deepest nesting that is read, aliases included.
pub(super) const MAX_DEPTH: usize = 100;

/// The most values that are read, aliases included.
pub(super) const MAX_NODES: usize = 1_000_000;

/// The most text that is read, aliases included: few values can still hold long texts.
pub(super) const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Where a value stands, and what is in it.
///
/// A tree, for a table of pointers would repeat every long key for all that is under it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    position: Position,
    inside: Inside,
}

#[derive(Clone, Debug)]
enum Inside {
    /// Also of an alias: its parts stand elsewhere, so the alias is the nearest place to show.
    Nothing,
    Items(Vec<Place>),
    Members(BTreeMap<String, Place>),
}

/// Reads one YAML document.
pub(super) fn read(text: &str) -> Result<(Value, Place), DocumentError> {
    let mut parser = Parser::new_from_str(text);
    let mut builder = Builder::default();
    // The parser's own `load` recurses on nested input; its events come from a plain state machine.
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| syntax_error(&error))?;
        let position = position(span.start);
        builder
            .take(event, position)
            .map_err(|kind| DocumentError { position, kind })?;
    }
    builder.root.ok_or(DocumentError {
        position: Position { line: 1, column: 1 },
        kind: Kind::Empty,
    })
}

impl Place {
    /// Where a pointer leads to, or the nearest place around it that is there.
    pub(super) fn nearest(&self, pointer: &Pointer) -> Position {
        let mut place = self;
        for segment in pointer.segments() {
            let inner = match &place.inside {
                Inside::Nothing => None,
                Inside::Items(items) => segment.parse().ok().and_then(|i: usize| items.get(i)),
                Inside::Members(members) => members.get(&segment),
            };
            let Some(inner) = inner else { break };
            place = inner;
        }
        place.position
    }

    const fn leaf(position: Position) -> Self {
        Self {
            position,
            inside: Inside::Nothing,
        }
    }
}

/// How much a value holds once its aliases are written out.
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

/// Builds the value from the parser's events, with a stack of its own instead of recursion.
#[derive(Default)]
struct Builder {
    open: Vec<Collection>,
    anchors: BTreeMap<usize, (Value, Size)>,
    total: Size,
    /// What the copies kept for aliases hold.
    kept: Size,
    root: Option<(Value, Place)>,
}

/// A list or mapping whose end was not seen yet.
struct Collection {
    position: Position,
    anchor: usize,
    content: Content,
    before: Size,
    depth_inside: usize,
}

enum Content {
    List(Vec<Value>, Vec<Place>),
    Mapping {
        map: Map<String, Value>,
        places: BTreeMap<String, Place>,
        key: Option<(String, Position)>,
    },
}

impl Builder {
    fn take(&mut self, event: Event<'_>, position: Position) -> Result<(), Kind> {
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
        self.add(value, Place::leaf(position), anchor, size)
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
        // Counted before it is copied, so that no text makes us copy more than the limit.
        self.total.grow(size)?;
        let value = value.clone();
        self.add(value, Place::leaf(position), 0, size)
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
            before,
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
            nodes: self.total.nodes - collection.before.nodes,
            bytes: self.total.bytes - collection.before.bytes,
            depth: collection.depth_inside + 1,
        };
        let (value, inside) = match collection.content {
            Content::List(items, places) => (Value::Array(items), Inside::Items(places)),
            Content::Mapping { map, places, .. } => (Value::Object(map), Inside::Members(places)),
        };
        let place = Place {
            position: collection.position,
            inside,
        };
        self.add(value, place, collection.anchor, size)
    }

    /// Puts a finished value where it belongs: into the innermost collection, or at the root.
    fn add(
        &mut self,
        value: Value,
        mut place: Place,
        anchor: usize,
        size: Size,
    ) -> Result<(), Kind> {
        if anchor != 0 {
            self.kept.grow(size)?;
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

/// The text of a key. Whole numbers and booleans are their text: `8080:` is the key `"8080"`.
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
            true => Ok(scalar::plain(&text)?.into_value(text.into_owned())),
            false => Ok(Value::String(text.into_owned())),
        };
    };
    let fits = match core_tag(tag)? {
        "str" => return Ok(Value::String(text.into_owned())),
        "null" => |plain: &Plain| matches!(plain, Plain::Null),
        "bool" => |plain: &Plain| matches!(plain, Plain::Bool(_)),
        "int" => |plain: &Plain| matches!(plain, Plain::Int(_)),
        "float" => |plain: &Plain| matches!(plain, Plain::Int(_) | Plain::Float(_)),
        _ => return Err(Kind::TagMismatch { tag: tag_text(tag) }),
    };
    let plain = scalar::plain(&text)?;
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
    // The scanner looks ahead, so its own limit can come before ours.
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
