use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_automata::util::{start, syntax};
use regex_automata::{Anchored, MatchKind};

/// The most memory one automaton may take.
const MAX_BYTES: usize = 1 << 20;

/// A set of texts as a deterministic automaton over bytes.
#[derive(Debug)]
pub(super) struct Automaton {
    dfa: dense::DFA<Vec<u32>>,
    start: StateID,
}

impl Automaton {
    /// The texts in which a pattern matches somewhere.
    pub(super) fn containing(pattern: &str) -> Option<Self> {
        Self::whole(&format!("(?s:.)*(?:{pattern})(?s:.)*"))
    }

    /// Every text.
    pub(super) fn universal() -> Option<Self> {
        Self::whole("(?s:.)*")
    }

    fn whole(pattern: &str) -> Option<Self> {
        let dfa = dense::Builder::new()
            .configure(
                dense::Config::new()
                    .start_kind(StartKind::Anchored)
                    .match_kind(MatchKind::All)
                    .accelerate(false)
                    .dfa_size_limit(Some(MAX_BYTES))
                    .determinize_size_limit(Some(MAX_BYTES)),
            )
            .syntax(syntax::Config::new().nest_limit(200))
            .thompson(
                thompson::Config::new()
                    .which_captures(WhichCaptures::None)
                    .nfa_size_limit(Some(MAX_BYTES)),
            )
            .build(pattern)
            .ok()?;
        let start = dfa
            .start_state(&start::Config::new().anchored(Anchored::Yes))
            .ok()?;
        Some(Self { dfa, start })
    }

    pub(super) fn start(&self) -> StateID {
        self.start
    }

    pub(super) fn next(&self, state: StateID, byte: u8) -> StateID {
        self.dfa.next_state(state, byte)
    }

    /// Whether the text read so far is in the set.
    pub(super) fn is_accepting(&self, state: StateID) -> bool {
        self.dfa.is_match_state(self.dfa.next_eoi_state(state))
    }

    /// Whether no continuation from this state is in the set.
    pub(super) fn is_dead(&self, state: StateID) -> bool {
        self.dfa.is_dead_state(state) || self.dfa.is_quit_state(state)
    }

    pub(super) fn accepts(&self, text: &str) -> bool {
        let end = text
            .bytes()
            .fold(self.start, |state, byte| self.next(state, byte));
        self.is_accepting(end)
    }
}
