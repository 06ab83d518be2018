//! Reads documents item by item: JSON Lines in constant memory, anything else with its text held
//! once.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Stdin};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolwarden_canon::{
    BesideTools, CanonicalizedDocument, CanonicalizedTool, Container, FormatChoice, ListFacts,
    TextItem, canonicalize_shared, canonicalize_with_values, list_facts, split,
};
use toolwarden_files::{InputFile, open};
use toolwarden_model::json::{JsonError, Pointer, Position, Positions, decode_utf8};
use toolwarden_model::{SharedText, did_you_mean};

use crate::args::InputArgs;
use crate::error::CliError;
use crate::report::FindingOrigin;

/// One tool read from an input, with where it stands.
pub(crate) struct InputTool<'t> {
    pub(crate) location: ItemLocation<'t>,
    pub(crate) canonicalized: CanonicalizedTool,
    /// Whether the whole input is this one definition.
    pub(crate) is_only: bool,
}

impl InputTool<'_> {
    /// A key of the definition, or of what it stands in, that is written twice, and where it is.
    pub(crate) fn doubled_key(&self) -> Option<(Pointer, Option<Position>)> {
        let pointer = self.canonicalized.doubled_key()?;
        let positions = Positions::of(self.location.item.text);
        let position = self.location.in_file(positions.nearest(pointer));
        Some((self.location.item.pointer.join(pointer), Some(position)))
    }
}

/// What the lists of all inputs say beside their tools.
#[derive(Debug, Default)]
pub(crate) struct InputListFacts {
    /// The lists that continue on another page: the file, and where it says so.
    pages: Vec<(Arc<str>, Pointer)>,
    /// The number of lists that do not.
    ended: usize,
    /// What servers tell models about themselves.
    pub(crate) instructions: Vec<(SourceLocation, String)>,
    /// Members beside the tools that no tool is read from.
    pub(crate) beside: Vec<(SourceLocation, BesideTools)>,
}

impl InputListFacts {
    /// The members beside the tools that a command does not read: each with its file and line.
    pub(crate) fn unread_members(&self) -> impl Iterator<Item = String> {
        self.beside.iter().map(|(location, member)| {
            let (file, line, pointer) = (&location.file, location.start.line, &member.pointer);
            format!("{file}:{line}: `{pointer}` stands beside the tools and is not read")
        })
    }

    /// The first page of a list whose last page is missing.
    pub(crate) fn unfinished_page(&self) -> Option<CliError> {
        let (file, pointer) = self.pages.first().filter(|_| self.ended == 0)?;
        Some(CliError::OnlyAPage {
            place: file.to_string(),
            pointer: pointer.clone(),
        })
    }

    fn add(&mut self, document: &InputText, facts: ListFacts) {
        let pages = facts.next_cursors.into_iter();
        self.pages
            .extend(pages.map(|pointer| (Arc::clone(&document.file), pointer)));
        self.ended += facts.ended;
        for (pointer, said) in facts.instructions {
            let position = Positions::of(&document.text).nearest(&pointer);
            let line = document.lines_before + position.line;
            let location = SourceLocation::at_line(&document.file, line);
            self.instructions.push((location, said));
        }
        for member in facts.beside {
            let position = Positions::of(&document.text).nearest(&member.pointer);
            let line = document.lines_before + position.line;
            let location = SourceLocation::at_line(&document.file, line);
            self.beside.push((location, member));
        }
    }
}

/// The item a tool was read from.
#[derive(Clone, Copy)]
pub(crate) struct ItemLocation<'t> {
    pub(crate) file: &'t Path,
    document: &'t InputText,
    item: &'t TextItem<'t>,
}

/// The location of a definition, owned so that it outlives the reader of its file.
#[derive(Clone, Debug)]
pub(crate) struct SourceLocation {
    pub(crate) file: Arc<str>,
    pub(crate) pointer: Pointer,
    pub(crate) origin: FindingOrigin,
    text: SharedText,
    start: Position,
    within: Pointer,
    /// Parts that stand elsewhere than their place in the definition says, the longest first.
    moved: &'static [(&'static str, &'static str)],
}

/// Where the parts of a document stand that is watched as if it were a tool.
const OF_DOCUMENT: &[(&str, &str)] = &[("/extensions~1raw/document", "")];

/// Where the parts stand that say where calls go and what they need.
const OF_CALLS: &[(&str, &str)] = &[
    (
        "/extensions~1raw/document/components",
        "/components/securitySchemes",
    ),
    ("/extensions~1raw/document", ""),
];

impl SourceLocation {
    /// The whole document that a definition stands in.
    pub(crate) fn of_document(&self) -> Self {
        self.around(OF_DOCUMENT)
    }

    /// The parts of the document that say where calls go.
    pub(crate) fn of_calls(&self) -> Self {
        self.around(OF_CALLS)
    }

    fn around(&self, moved: &'static [(&'static str, &'static str)]) -> Self {
        let outer = self.pointer.as_str().strip_suffix(self.within.as_str());
        Self {
            pointer: Pointer::from(outer.unwrap_or_default()),
            within: Pointer::root(),
            moved,
            ..self.clone()
        }
    }

    /// Where a part of the definition stands, as a pointer into the file.
    pub(crate) fn pointer_to(&self, part: &Pointer) -> Pointer {
        self.pointer.join(&self.actual(part))
    }

    fn actual(&self, part: &Pointer) -> Pointer {
        let text = part.as_str();
        let found = self.moved.iter().find_map(|(from, to)| {
            let rest = text.strip_prefix(from)?;
            let whole = rest.is_empty() || rest.starts_with('/');
            whole.then(|| format!("{to}{rest}"))
        });
        found.map_or_else(|| part.clone(), |place| Pointer::from(place.as_str()))
    }

    /// A line of a file that stands for the definition.
    pub(crate) fn at_line(file: &str, line: usize) -> Self {
        Self {
            origin: FindingOrigin::File,
            start: Position { line, column: 1 },
            ..Self::from_text(file, "")
        }
    }

    /// The text the definition stands in.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// A definition that stands in no file, under a name for where it comes from.
    pub(crate) fn from_text(file: &str, text: impl Into<SharedText>) -> Self {
        Self {
            file: file.into(),
            pointer: Pointer::root(),
            origin: FindingOrigin::Elsewhere,
            text: text.into(),
            start: Position { line: 1, column: 1 },
            within: Pointer::root(),
            moved: &[],
        }
    }

    /// Where parts of the definition stand in the file: each part itself, or the nearest around it.
    pub(crate) fn positions<'p>(&self, parts: impl Iterator<Item = &'p Pointer>) -> Vec<Position> {
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            return Vec::new();
        }
        let positions = Positions::of(&self.text);
        let nearest = parts.map(|part| positions.nearest(&self.within.join(&self.actual(part))));
        nearest
            .map(|position| self.start.offset_by(position))
            .collect()
    }
}

/// A text that is read item by item.
struct InputText {
    text: SharedText,
    /// What the file is called in reports.
    file: Arc<str>,
    /// Lines of the file before the text.
    lines_before: usize,
    /// Whether the text is one line of many.
    is_line: bool,
    /// The last offset a position was asked for, and that position. Items come in order, so each
    /// stretch of the text is looked through once.
    last_position: Cell<(usize, Position)>,
}

impl InputText {
    const fn new(text: SharedText, file: Arc<str>, lines_before: usize, is_line: bool) -> Self {
        let start = Position { line: 1, column: 1 };
        Self {
            text,
            file,
            lines_before,
            is_line,
            last_position: Cell::new((0, start)),
        }
    }

    fn position(&self, offset: usize) -> Position {
        let (mut from, mut position) = self.last_position.get();
        if offset < from {
            (from, position) = (0, Position { line: 1, column: 1 });
        }
        let position = position.offset_by(Position::after(
            self.text.get(from..offset).unwrap_or_default(),
        ));
        self.last_position.set((offset, position));
        position
    }
}

impl ItemLocation<'_> {
    /// Where parts of the definition stand in the file: each part itself, or the nearest around it.
    pub(crate) fn positions<'p>(
        &self,
        found: &CanonicalizedTool,
        parts: impl Iterator<Item = &'p Pointer>,
    ) -> Vec<Position> {
        let within = found
            .pointer
            .as_str()
            .strip_prefix(self.item.pointer.as_str())
            .unwrap_or_default();
        let within = Pointer::from(within);
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            return Vec::new();
        }
        let positions = Positions::of(self.item.text);
        parts
            .map(|part| self.in_file(positions.nearest(&within.join(part))))
            .collect()
    }

    /// What is needed to tell later where parts of the definition stand.
    pub(crate) fn source_location(&self, found: &CanonicalizedTool) -> SourceLocation {
        let within = found
            .pointer
            .as_str()
            .strip_prefix(self.item.pointer.as_str())
            .unwrap_or_default();
        SourceLocation {
            file: Arc::clone(&self.document.file),
            // What comes over standard input stands in no file.
            origin: if self.file == Path::new("-") {
                FindingOrigin::Elsewhere
            } else {
                FindingOrigin::File
            },
            text: self.document.text.part(self.item.text),
            start: self.in_file(Position { line: 1, column: 1 }),
            within: Pointer::from(within),
            moved: &[],
            pointer: found.pointer.clone(),
        }
    }

    /// A place of the item as a part of one of its definitions; what stands outside of that is its root.
    pub(crate) fn part_of(&self, found: &CanonicalizedTool, in_item: &Pointer) -> Pointer {
        let within = found.pointer.as_str();
        let within = within.strip_prefix(self.item.pointer.as_str());
        let rest = in_item.as_str().strip_prefix(within.unwrap_or_default());
        let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with('/'));
        rest.map_or_else(Pointer::root, Pointer::from)
    }

    /// The file, and the line where it is one of many.
    pub(crate) fn file_and_line(&self) -> String {
        let file = self.file.display();
        match self.document.is_line {
            true => format!("{file}:{}", self.document.lines_before + 1),
            false => file.to_string(),
        }
    }

    /// Where the item starts in the document.
    fn offset(&self) -> usize {
        (self.item.text.as_ptr() as usize).saturating_sub(self.document.text.as_ptr() as usize)
    }

    fn in_file(&self, position: Position) -> Position {
        let position = self.document.position(self.offset()).offset_by(position);
        Position {
            line: self.document.lines_before + position.line,
            ..position
        }
    }
}

/// Hands over every tool of every input, in order, and returns what the lists say beside their tools.
pub(crate) fn each_tool(
    args: &InputArgs,
    see: impl FnMut(InputTool<'_>) -> Result<(), CliError>,
) -> Result<InputListFacts, CliError> {
    let mut facts = InputListFacts::default();
    read_tools(args, canonicalize_shared, |_| None, see, &mut facts)?;
    Ok(facts)
}

/// As [`each_tool`], for a caller that compares definitions and needs each as a value, too. Leaves out tools
/// whose text is known: `known` gives their name. Also collects what the lists say beside their tools.
pub(crate) fn each_tool_except(
    args: &InputArgs,
    known: impl FnMut(&str) -> Option<String>,
    see: impl FnMut(InputTool<'_>) -> Result<(), CliError>,
    facts: &mut InputListFacts,
) -> Result<(), CliError> {
    read_tools(args, canonicalize_with_values, known, see, facts)
}

/// Converts one item of a text to canonical form.
type Canonicalize =
    fn(&TextItem<'_>, &SharedText, FormatChoice) -> Result<CanonicalizedDocument, JsonError>;

fn read_tools(
    args: &InputArgs,
    convert: Canonicalize,
    mut known: impl FnMut(&str) -> Option<String>,
    mut see: impl FnMut(InputTool<'_>) -> Result<(), CliError>,
    facts: &mut InputListFacts,
) -> Result<(), CliError> {
    let mut wanted: Vec<(&str, bool)> = args
        .tools
        .iter()
        .map(|name| (name.as_str(), false))
        .collect();
    let mut names: Vec<String> = Vec::new();
    let inputs = expand_paths(args.paths())?;
    let several = inputs.len() > 1;
    for file in &inputs {
        let shown: Arc<str> = file.display().to_string().into();
        read_input(file, |text, lines_before, whole| {
            let items = split(&text).map_err(|error| json_error(file, lines_before, error))?;
            let alone = whole && !several && items.len() == 1;
            let document = InputText::new(text.clone(), Arc::clone(&shown), lines_before, !whole);
            facts.add(&document, list_facts(&text));
            for item in &items {
                if let Some(name) = known(item.text) {
                    match wanted.iter_mut().find(|(wanted, _)| *wanted == name) {
                        Some((_, hit)) => *hit = true,
                        None => names.push(name),
                    }
                    continue;
                }
                let place = ItemLocation {
                    file,
                    document: &document,
                    item,
                };
                let read = canonicalize(place, args.source_format, convert)?;
                let single = read.container == Container::Single && item.pointer == Pointer::root();
                for found in read.tools {
                    if !wanted.is_empty() {
                        let name = &found.tool.name;
                        let Some((_, hit)) = wanted.iter_mut().find(|(wanted, _)| wanted == name)
                        else {
                            names.push(name.clone());
                            continue;
                        };
                        *hit = true;
                    }
                    see(InputTool {
                        location: place,
                        canonicalized: found,
                        is_only: (alone && single) || args.tools.len() == 1,
                    })?;
                }
            }
            Ok(())
        })?;
    }
    match wanted.into_iter().find(|(_, hit)| !hit) {
        Some((name, _)) => Err(CliError::NoSuchTool {
            name: name.to_owned(),
            suggestion: did_you_mean(name, names.iter().map(String::as_str)),
        }),
        None => Ok(()),
    }
}

fn canonicalize(
    place: ItemLocation<'_>,
    source: FormatChoice,
    convert: Canonicalize,
) -> Result<CanonicalizedDocument, CliError> {
    let read = convert(place.item, &place.document.text, source).map_err(|error| {
        let position = place.in_file(error.position);
        CliError::Json {
            place: place.file.to_owned(),
            position,
            kind: error.kind,
        }
    })?;
    // What a document without tools says twice may be its list of tools.
    if let (true, Some(doubled)) = (read.tools.is_empty(), read.duplicates.first()) {
        return Err(CliError::DoubledKey {
            place: place.file.to_owned(),
            pointer: place.item.pointer.join(&doubled.pointer),
            position: None,
        });
    }
    for found in &read.tools {
        for warning in &found.warnings {
            if let toolwarden_canon::Warning::InvalidCanonical { error } = warning {
                let pointer = found.pointer.as_str();
                let pointer = if pointer.is_empty() {
                    String::new()
                } else {
                    format!(" {pointer}")
                };
                return Err(CliError::Canonical {
                    place: place.file.to_owned(),
                    pointer,
                    source: Box::new(error.clone()),
                });
            }
        }
    }
    Ok(read)
}

fn json_error(file: &Path, lines_before: usize, error: JsonError) -> CliError {
    let position = Position {
        line: lines_before + error.position.line,
        ..error.position
    };
    CliError::Json {
        place: file.to_owned(),
        position,
        kind: error.kind,
    }
}

/// The files behind paths: one that exists is itself, a directory is the JSON files in it, any other
/// may be a glob.
pub(crate) fn expand_paths<'p>(
    paths: impl Iterator<Item = &'p Path>,
) -> Result<Vec<PathBuf>, CliError> {
    let mut files = Vec::new();
    for path in paths {
        let pattern = path.to_string_lossy();
        if path.is_dir() {
            files.extend(json_files(path)?);
            continue;
        }
        if path == Path::new("-") || path.exists() || !pattern.contains(['*', '?', '[']) {
            files.push(path.to_owned());
            continue;
        }
        let matches = glob::glob(&pattern).map_err(|source| CliError::BadGlob {
            pattern: pattern.clone().into_owned(),
            source,
        })?;
        let before = files.len();
        for entry in matches {
            files.push(entry.map_err(|error| CliError::Read {
                place: error.path().to_owned(),
                source: error.into(),
            })?);
        }
        if files.len() == before {
            return Err(CliError::NoMatch {
                pattern: pattern.into_owned(),
            });
        }
    }
    Ok(files)
}

/// The JSON files of a directory, sorted.
pub(crate) fn json_files(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let failed = |source| CliError::Read {
        place: folder.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_json = path
            .extension()
            .is_some_and(|it| it == "json" || it == "jsonl");
        if is_json && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(CliError::NoMatch {
            pattern: folder.join("*.json").display().to_string(),
        });
    }
    Ok(files)
}

enum InputReader {
    File(BufReader<InputFile>),
    Stdin(BufReader<Stdin>),
}

impl InputReader {
    fn open(file: &Path) -> io::Result<Self> {
        if file == Path::new("-") {
            return Ok(Self::Stdin(BufReader::new(io::stdin())));
        }
        Ok(Self::File(BufReader::with_capacity(1 << 16, open(file)?)))
    }

    fn buffered(&mut self) -> &mut dyn BufRead {
        match self {
            Self::File(reader) => reader,
            Self::Stdin(reader) => reader,
        }
    }
}

/// The most room that is taken for a line before it is read.
const MAX_RESERVED: u64 = 1 << 28;

/// Reads an input as JSON Lines while its lines are documents, else as one text.
///
/// `see` gets a text, the number of lines before it, and whether it is all there is.
fn read_input(
    file: &Path,
    mut see: impl FnMut(SharedText, usize, bool) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let failed = |source| CliError::Read {
        place: file.to_owned(),
        source,
    };
    let mut reader = InputReader::open(file).map_err(failed)?;
    let mut line = Vec::new();
    // A document on one line would be copied each time the buffer doubles. Room that is not used takes no
    // memory, and without it reading is only slower.
    let size = std::fs::metadata(file).map_or(0, |it| it.len());
    let _slower = line.try_reserve_exact(usize::try_from(size.min(MAX_RESERVED)).unwrap_or(0));
    let mut lines_before = 0;
    let mut first = true;
    loop {
        line.clear();
        let end = reader
            .buffered()
            .read_until(b'\n', &mut line)
            .map_err(failed)?
            == 0;
        if end {
            return if first {
                see("".into(), lines_before, true)
            } else {
                Ok(())
            };
        }
        let blank = line.iter().all(u8::is_ascii_whitespace);
        if blank {
            lines_before += 1;
            continue;
        }
        let complete = decode_utf8(&line)
            .is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok());
        if !complete {
            reader.buffered().read_to_end(&mut line).map_err(failed)?;
            let text = decode(file, lines_before, line)?;
            return see(text, lines_before, first);
        }
        let blank_lines = skip_blank(reader.buffered()).map_err(failed)?;
        let whole = first && blank_lines.is_none();
        // A line among many is copied: the buffer has room for the whole file.
        let bytes = if whole {
            std::mem::take(&mut line)
        } else {
            line.clone()
        };
        see(decode(file, lines_before, bytes)?, lines_before, whole)?;
        first = false;
        lines_before += 1 + blank_lines.unwrap_or_default();
    }
}

/// Bytes as text without a byte order mark. The bytes are not copied.
fn decode(file: &Path, lines_before: usize, bytes: Vec<u8>) -> Result<SharedText, CliError> {
    match String::from_utf8(bytes) {
        Ok(text) => {
            let text = SharedText::from(text);
            let marked = text.strip_prefix('\u{feff}').map(|rest| text.part(rest));
            Ok(marked.unwrap_or(text))
        }
        Err(error) => {
            let text = decode_utf8(error.as_bytes());
            let text = text.map_err(|error| json_error(file, lines_before, error))?;
            Ok(text.into())
        }
    }
}

/// Skips white space; gives the number of lines skipped, or nothing where nothing else follows.
fn skip_blank(reader: &mut dyn BufRead) -> io::Result<Option<usize>> {
    let mut lines = 0;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(None);
        }
        let blank = buffer
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        lines += buffer
            .iter()
            .take(blank)
            .filter(|byte| **byte == b'\n')
            .count();
        let all = blank == buffer.len();
        reader.consume(blank);
        if !all {
            return Ok(Some(lines));
        }
    }
}

#[cfg(test)]
mod tests;
