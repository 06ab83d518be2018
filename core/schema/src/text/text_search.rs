use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use regex_automata::util::primitives::StateID;

use super::automaton::Automaton;
use crate::comparison_policy::SearchBudget;

/// The longest text that is written out where patterns decide about it.
const MAX_LENGTH: u64 = 65_536;
/// The longest text that is written out where only its length counts.
const MAX_PLAIN_LENGTH: u64 = 8_000_000;

/// The constraints on a text. Lengths are counted in characters.
#[derive(Debug, Default)]
pub(crate) struct TextQuery<'a> {
    pub(crate) matching: Vec<Arc<str>>,
    pub(crate) avoiding: Vec<Arc<str>>,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    pub(crate) excluded: BTreeSet<&'a str>,
}

/// The answer of a search for a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TextAnswer {
    Text(String),
    Nothing,
    /// The search exceeded its budget, or a pattern is not regular.
    Unknown,
}

pub(super) fn find(
    required: &[Arc<Automaton>],
    forbidden: &[Arc<Automaton>],
    wanted: &TextQuery<'_>,
    (budget, visited): (&SearchBudget, &mut u32),
) -> TextAnswer {
    if wanted.max.is_some_and(|max| max < wanted.min) {
        return TextAnswer::Nothing;
    }
    if required.is_empty() && forbidden.is_empty() {
        return match wanted.min <= MAX_PLAIN_LENGTH {
            true => plain(wanted),
            false => TextAnswer::Unknown,
        };
    }
    if wanted.min > MAX_LENGTH {
        return TextAnswer::Unknown;
    }
    // A bound far above what is needed multiplies the states for nothing: try without it first.
    let relaxed = Product::new(required, forbidden, wanted, None)
        .and_then(|product| product.search(budget, visited));
    match (relaxed, wanted.max) {
        (None, _) => TextAnswer::Unknown,
        (Some(None), _) => TextAnswer::Nothing,
        (Some(Some(text)), Some(max)) if length(&text) > max => {
            let exact = Product::new(required, forbidden, wanted, Some(max));
            match exact.and_then(|product| product.search(budget, visited)) {
                None => TextAnswer::Unknown,
                Some(None) => TextAnswer::Nothing,
                Some(Some(text)) => TextAnswer::Text(text),
            }
        }
        (Some(Some(text)), _) => TextAnswer::Text(text),
    }
}

fn length(text: &str) -> u64 {
    text.chars().count() as u64
}

/// The shortest text of the wanted length that is not excluded. There are more letters than
/// excluded texts can use up, except where the only text is the empty one.
fn plain(wanted: &TextQuery<'_>) -> TextAnswer {
    let fits = |text: &str| !wanted.excluded.contains(text);
    let min = usize::try_from(wanted.min).unwrap_or(usize::MAX);
    let alphabet = ('a'..='z')
        .chain('0'..='9')
        .chain('A'..='Z')
        .chain('\u{4e00}'..='\u{9fff}');
    let lengths = [min, min + 1];
    for length in lengths {
        if wanted.max.is_some_and(|max| length as u64 > max) {
            break;
        }
        if length == 0 {
            if fits("") {
                return TextAnswer::Text(String::new());
            }
            continue;
        }
        let body = "a".repeat(length - 1);
        for last in alphabet {
            let text = format!("{body}{last}");
            if fits(&text) {
                return TextAnswer::Text(text);
            }
        }
        return TextAnswer::Unknown;
    }
    TextAnswer::Nothing
}

/// Automata run side by side, with the number of characters read and the place among the excluded
/// texts.
struct Product<'p> {
    universal: Automaton,
    required: &'p [Arc<Automaton>],
    forbidden: &'p [Arc<Automaton>],
    min: u64,
    max: Option<u64>,
    trie: Trie,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    automata: Vec<StateID>,
    read: u64,
    excluded: Option<usize>,
}

impl<'p> Product<'p> {
    fn new(
        required: &'p [Arc<Automaton>],
        forbidden: &'p [Arc<Automaton>],
        wanted: &TextQuery<'_>,
        max: Option<u64>,
    ) -> Option<Self> {
        Some(Self {
            universal: Automaton::universal()?,
            required,
            forbidden,
            min: wanted.min,
            max,
            trie: Trie::of(&wanted.excluded),
        })
    }

    fn automata(&self) -> impl Iterator<Item = &Automaton> {
        let given = self.required.iter().chain(self.forbidden);
        std::iter::once(&self.universal).chain(given.map(AsRef::as_ref))
    }

    /// The shortest text, if there is one; no answer if the budget is exceeded.
    #[expect(
        clippy::option_option,
        reason = "no answer is not the answer that there is none"
    )]
    fn search(&self, budget: &SearchBudget, visited: &mut u32) -> Option<Option<String>> {
        let bytes = readable_bytes();
        let start = State {
            automata: self.automata().map(Automaton::start).collect(),
            read: 0,
            excluded: Some(0),
        };
        let mut seen = HashMap::new();
        // Each state that was reached, with where it was reached from and by which byte.
        let mut reached: Vec<(State, usize, u8)> = vec![(start.clone(), 0, 0)];
        seen.insert(start, 0_usize);
        let mut open = VecDeque::from([0_usize]);
        while let Some(at) = open.pop_front() {
            *visited += 1;
            let (state, _, _) = reached.get(at)?.clone();
            if self.accepts(&state) {
                return Some(text(&reached, at));
            }
            if reached.len() > budget.states as usize || budget.time.is_over() {
                return None;
            }
            for byte in &bytes {
                let Some(next) = self.step(&state, *byte) else {
                    continue;
                };
                if !seen.contains_key(&next) {
                    seen.insert(next.clone(), reached.len());
                    open.push_back(reached.len());
                    reached.push((next, at, *byte));
                }
            }
        }
        Some(None)
    }

    fn accepts(&self, state: &State) -> bool {
        let required = self.required.len() + 1;
        state.read >= self.min
            && !state.excluded.is_some_and(|node| self.trie.is_end(node))
            && self.automata().zip(&state.automata).enumerate().all(
                |(index, (automaton, state))| automaton.is_accepting(*state) == (index < required),
            )
    }

    fn step(&self, state: &State, byte: u8) -> Option<State> {
        let begins_character = byte & 0xC0 != 0x80;
        let mut read = state.read + u64::from(begins_character);
        match self.max {
            Some(max) if read > max => return None,
            Some(_) => {}
            // Beyond the least length the count no longer matters.
            None => read = read.min(self.min),
        }
        let required = self.required.len() + 1;
        let mut automata = Vec::with_capacity(state.automata.len());
        for (index, (automaton, state)) in self.automata().zip(&state.automata).enumerate() {
            let next = automaton.next(*state, byte);
            if index < required && automaton.is_dead(next) {
                return None;
            }
            automata.push(next);
        }
        Some(State {
            automata,
            read,
            excluded: state.excluded.and_then(|node| self.trie.next(node, byte)),
        })
    }
}

fn text(reached: &[(State, usize, u8)], end: usize) -> Option<String> {
    let mut bytes = Vec::new();
    let mut at = end;
    while at != 0 {
        let (_, from, byte) = reached.get(at)?;
        bytes.push(*byte);
        at = *from;
    }
    bytes.reverse();
    String::from_utf8(bytes).ok()
}

/// All bytes, the most readable ones first.
fn readable_bytes() -> Vec<u8> {
    let first = (b'a'..=b'z').chain(b'0'..=b'9').chain(b'A'..=b'Z');
    let printable = (b'!'..=b'~').chain([b' ']);
    let mut bytes = Vec::with_capacity(256);
    for byte in first.chain(printable).chain(0..=255) {
        if !bytes.contains(&byte) {
            bytes.push(byte);
        }
    }
    bytes
}

/// The excluded texts as a tree of their bytes.
#[derive(Debug, Default)]
struct Trie {
    nodes: Vec<(bool, Vec<(u8, usize)>)>,
}

impl Trie {
    fn of(texts: &BTreeSet<&str>) -> Self {
        let mut trie = Self {
            nodes: vec![(false, Vec::new())],
        };
        for text in texts {
            let mut at = 0;
            for byte in text.bytes() {
                at = match trie.next(at, byte) {
                    Some(next) => next,
                    None => trie.grow(at, byte),
                };
            }
            if let Some((end, _)) = trie.nodes.get_mut(at) {
                *end = true;
            }
        }
        trie
    }

    fn grow(&mut self, at: usize, byte: u8) -> usize {
        let next = self.nodes.len();
        if let Some((_, children)) = self.nodes.get_mut(at) {
            children.push((byte, next));
        }
        self.nodes.push((false, Vec::new()));
        next
    }

    fn next(&self, at: usize, byte: u8) -> Option<usize> {
        let (_, children) = self.nodes.get(at)?;
        children
            .iter()
            .find(|(edge, _)| *edge == byte)
            .map(|(_, next)| *next)
    }

    fn is_end(&self, at: usize) -> bool {
        self.nodes.get(at).is_some_and(|(end, _)| *end)
    }
}
