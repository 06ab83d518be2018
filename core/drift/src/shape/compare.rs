use super::bound::Horizons;
use super::cell::{Cell, Facet, Type};
use super::channel::Channel;
use super::count::{Entry, Values, count_of};
use super::drift::{Confidence, Evidence, Limit, ShapeDrift, Side, What};
use super::exact::Needed;
use super::key::ValueHash;
use super::name::{ITEMS, MEMBERS};
use super::node::Node;
use super::sketch::Shape;
use super::verdict::{Question, Story, decide, decide_exactly};

/// So many results must lack a type before seeing it is certain news.
const MIN_RESULTS_FOR_TYPE: u64 = 30;
/// So many results must have a member of an object inside a result before the loss of all its members is
/// certain news: one or two may be entries of a map.
const MIN_RESULTS_FOR_LOSS: u64 = 3;
/// So many differences at once must leave a test able to find a change of every result.
const DIFFERENCES: f64 = 10.0;
/// So many results must have a member before its lack is certain news.
const MIN_RESULTS_FOR_PRESENCE: u64 = 100;
/// Values are those of an enumeration if there are at most so many,
const MAX_ENUMERATION: usize = 16;
/// and each was seen so often on average.
const MIN_REPEATS: u64 = 5;

/// What changed from one shape to another by more than chance explains.
///
/// Each question is answered by Fisher's exact test on counts of results; together they err with a
/// probability of at most what this look may spend. Three rules need no test: a type never seen in 30
/// or more results, the lack of a member that 100 or more results all had, and an object that has none
/// of the members it had.
#[must_use]
pub fn compare(baseline: &Shape, window: &Shape, options: &Confidence) -> ShapeDrift {
    let (baseline, window) = (baseline.canonical(), window.canonical());
    let survey = Survey::of(&baseline, &window, AskedValues::Enumerations);
    let values = survey.values;
    let (mut drift, level) = decide(survey.questions, options);
    drift.limits = limits(&baseline, &window, values);
    let telling = level.min(options.spending() / DIFFERENCES);
    let needed = Needed::at(telling, baseline.results);
    let enough = baseline.results >= needed.baseline && window.results >= needed.window;
    if !enough && drift.is_empty() && !baseline.is_empty() && !window.is_empty() {
        drift.limits.push(Limit::TooFew {
            baseline: baseline.results,
            window: window.results,
            needed_baseline: needed.baseline.max(baseline.results),
            needed_window: needed.window,
        });
    }
    drift
}

/// What differs between two shapes of few results that do not depend on chance: the same calls, answered
/// the same way every time.
///
/// Members, types, formats and, where both shapes have hashes of them, small values are compared. Lengths
/// and magnitudes are not.
#[must_use]
pub fn compare_exactly(baseline: &Shape, window: &Shape) -> ShapeDrift {
    let (baseline, window) = (baseline.canonical(), window.canonical());
    let survey = Survey::of(&baseline, &window, AskedValues::All);
    let values = survey.values;
    let mut drift = decide_exactly(survey.questions, baseline.results, window.results);
    let limits = limits(&baseline, &window, values).into_iter();
    // What was not seen in results that do not depend on chance does not come.
    let limits = limits.filter(|it| !matches!(it, Limit::Unseen { results: 1.., .. }));
    drift.limits = limits.collect();
    drift
}

fn limits(baseline: &Shape, window: &Shape, values: AskedValues) -> Vec<Limit> {
    let sides = [(Side::Baseline, baseline), (Side::Window, window)];
    let mut limits: Vec<_> = sides
        .iter()
        .map(|(side, shape)| Limit::unseen(*side, shape.results))
        .collect();
    let full = sides
        .iter()
        .filter(|(_, shape)| shape.horizons != Horizons::OPEN);
    limits.extend(full.map(|(side, _)| Limit::Truncated(*side)));
    if values == AskedValues::None && !baseline.is_empty() && !window.is_empty() {
        limits.push(Limit::NoValues);
    }
    limits
}

/// Which values are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AskedValues {
    /// None: they are not known, or hashed under different keys.
    None,
    /// Those of what looks like an enumeration.
    Enumerations,
    /// All that are kept.
    All,
}

/// Walks both shapes and asks what can be asked.
struct Survey {
    horizons: Horizons,
    values: AskedValues,
    channel: Channel,
    questions: Vec<Question>,
}

/// The two nodes at one path.
#[derive(Clone, Copy)]
struct Pair<'n> {
    baseline: &'n Node,
    window: &'n Node,
    pointer: &'n str,
}

impl Survey {
    fn of(baseline: &Shape, window: &Shape, values: AskedValues) -> Self {
        let comparable = baseline.key.is_some() && baseline.key == window.key;
        let mut survey = Self {
            horizons: baseline.horizons.min(window.horizons),
            values: if comparable {
                values
            } else {
                AskedValues::None
            },
            channel: Channel::Value,
            questions: Vec::new(),
        };
        if !baseline.is_empty() && !window.is_empty() {
            survey.channels(baseline, window);
        }
        survey
    }

    fn channels(&mut self, baseline: &Shape, window: &Shape) {
        let sides = [baseline, window];
        let results =
            |shape: &Shape, channel| shape.channels.get(&channel).map_or(0, |seen| seen.results);
        for channel in Channel::ALL {
            self.channel = channel;
            // Errors are counted among all results, everything else among those that are none:
            // otherwise more errors would look like less of everything.
            let [before, now] = sides.map(|shape| Evidence {
                seen: results(shape, channel),
                of: match channel {
                    Channel::Error => shape.results,
                    _ => shape.results.saturating_sub(results(shape, Channel::Error)),
                },
            });
            let what = if channel == Channel::Error {
                What::Errors
            } else {
                What::Channel
            };
            self.ask("", what, Story::Presence, before, now);
            if let (Some(baseline), Some(window)) = (
                baseline.channels.get(&channel),
                window.channels.get(&channel),
            ) {
                self.path(Pair {
                    baseline: &baseline.node,
                    window: &window.node,
                    pointer: "",
                });
            }
        }
    }

    fn path(&mut self, pair: Pair<'_>) {
        self.types(pair);
        if pair.baseline.rank < self.horizons.details {
            self.cells(pair);
        }
        if pair.baseline.rank < self.horizons.values {
            match self.values {
                AskedValues::None => {}
                AskedValues::Enumerations => self.enumeration(pair),
                AskedValues::All => self.all_values(pair),
            }
        }
        if self.replaced(pair) {
            return;
        }
        for name in names(pair) {
            let child = (pair.baseline.get(name), pair.window.get(name));
            let rank = child.0.or(child.1).map(|node| node.rank);
            if rank.is_none_or(|rank| rank >= self.horizons.structure) {
                continue;
            }
            let pointer = format!("{}/{}", pair.pointer, escaped(name));
            self.presence(pair, child, &pointer, name);
            if let (Some(baseline), Some(window)) = child {
                self.path(Pair {
                    baseline,
                    window,
                    pointer: &pointer,
                });
            }
        }
    }

    /// Asks whether an object has none of the members it had; the loss of each needs no telling then.
    fn replaced(&mut self, pair: Pair<'_>) -> bool {
        let objects = |node: &Node| node.types.get(Type::Object);
        let (before, now) = (objects(pair.baseline), objects(pair.window));
        let whole = pair.pointer.is_empty() || pair.pointer.strip_prefix('/') == Some(ITEMS);
        let enough = if whole { 1 } else { MIN_RESULTS_FOR_LOSS };
        let members = |node: &'_ Node| -> Vec<String> {
            let children = node.children.iter().filter(|it| &*it.name != ITEMS);
            children.map(|it| it.name.to_string()).collect()
        };
        let (gone, new) = (members(pair.baseline), members(pair.window));
        // A map has other members every time. An object has one that was always there.
        let is_object = pair
            .baseline
            .children
            .iter()
            .any(|it| it.is_member() && it.full >= before);
        let mut children = pair.baseline.children.iter().chain(&pair.window.children);
        let complete = children.all(|it| it.rank < self.horizons.structure);
        let disjoint = !new.is_empty() && !new.iter().any(|name| gone.contains(name));
        let replaced = is_object && complete && disjoint && before >= enough && now > 0;
        // What fails once in a while fails in many ways.
        if !replaced || self.channel == Channel::Error {
            return false;
        }
        let (before, now) = (
            Evidence {
                seen: 0,
                of: before,
            },
            Evidence { seen: now, of: now },
        );
        let evidence = (before, now);
        let question = Question::new(
            self.channel,
            pair.pointer,
            (What::Replaced, Story::Type),
            evidence,
        );
        self.push(Question {
            certain: true,
            detail: Some(format!("gone: {}; new: {}", listed(&gone), listed(&new))),
            ..question
        });
        true
    }

    fn types(&mut self, pair: Pair<'_>) {
        // A null says that there is no value, as a missing member does: of what type a value is, is asked
        // of the others.
        let values = |node: &Node| node.n.saturating_sub(node.types.get(Type::Null));
        let [values_before, values_now] = [pair.baseline, pair.window].map(values);
        for kind in Type::ALL.into_iter().filter(|kind| *kind != Type::Fraction) {
            let (before, now) = (pair.baseline.types.get(kind), pair.window.types.get(kind));
            let (mut before, mut now) = evidence(pair, before, now);
            if kind != Type::Null {
                // A result with both has them in different items of an array.
                before.of = values_before.max(before.seen);
                now.of = values_now.max(now.seen);
            }
            let what = match (before.seen, now.seen) {
                (0, _) => What::NewType(kind),
                (_, 0) => What::GoneType(kind),
                _ => What::Types(kind),
            };
            let unseen = before.seen == 0 && now.seen > 0;
            if unseen && before.of >= MIN_RESULTS_FOR_TYPE {
                self.certain(pair.pointer, what, Story::Type, before, now);
            } else {
                self.ask(pair.pointer, what, Story::Type, before, now);
            }
        }
        let [before, now] = [pair.baseline, pair.window].map(|node| Evidence {
            seen: node.types.get(Type::Fraction),
            of: node.types.get(Type::Number),
        });
        self.ask(pair.pointer, What::Fractions, Story::Format, before, now);
    }

    /// Asks about a member; a member that is new or gone is reported as a whole.
    fn presence(
        &mut self,
        parent: Pair<'_>,
        child: (Option<&Node>, Option<&Node>),
        pointer: &str,
        name: &str,
    ) {
        if name == ITEMS {
            return;
        }
        let objects = |node: &Node| node.types.get(Type::Object);
        let (of_before, of_now) = (objects(parent.baseline), objects(parent.window));
        let count = |node: Option<&Node>, of: u64| Evidence {
            seen: node.map_or(0, |node| node.n),
            of,
        };
        let (before, now) = (count(child.0, of_before), count(child.1, of_now));
        let what = if before.seen == 0 {
            What::NewField
        } else {
            What::Presence
        };
        if name == MEMBERS {
            return self.ask(pointer, what, Story::Presence, before, now);
        }
        let lacking = |node: Option<&Node>, of: u64| Evidence {
            seen: of.saturating_sub(node.map_or(0, |node| node.full)),
            of,
        };
        let (lacked, lacks) = (lacking(child.0, of_before), lacking(child.1, of_now));
        if lacked.seen == 0 && lacks.seen > 0 && of_before >= MIN_RESULTS_FOR_PRESENCE {
            return self.certain(pointer, What::Missing, Story::Presence, lacked, lacks);
        }
        self.ask(pointer, what, Story::Presence, before, now);
        // Outside of arrays it is the same question the other way round.
        let same =
            |count: Evidence, lack: Evidence| count.seen.saturating_add(lack.seen) == count.of;
        if !same(before, lacked) || !same(now, lacks) {
            self.ask(pointer, What::Presence, Story::Presence, lacked, lacks);
        }
    }

    fn cells(&mut self, pair: Pair<'_>) {
        for cell in union(&pair.baseline.cells, &pair.window.cells) {
            let of = |node: &Node| match cell.facet {
                Facet::Items => node.types.get(Type::Array),
                Facet::Format | Facet::Length | Facet::Lines => node.types.get(Type::String),
                Facet::Magnitude => node.types.get(Type::Number),
            };
            let count = |node: &Node| Evidence {
                seen: node.cell(cell),
                of: of(node),
            };
            let (before, now) = (count(pair.baseline), count(pair.window));
            let (what, story) = described(cell, before.seen == 0);
            let question = Question::new(self.channel, pair.pointer, (what, story), (before, now));
            self.push(Question {
                bucket: (story == Story::Size).then_some(cell),
                ..question
            });
        }
    }

    /// Asks about the values of what looks like an enumeration.
    fn enumeration(&mut self, pair: Pair<'_>) {
        let Values::Few(known) = &pair.baseline.values else {
            return;
        };
        let total: u64 = known
            .iter()
            .map(|entry| entry.count)
            .fold(0, u64::saturating_add);
        let repeated = total / MIN_REPEATS >= known.len() as u64;
        let closed = pair.baseline.open.count == 0 && !known.is_empty();
        if !closed || !repeated || known.len() > MAX_ENUMERATION {
            return;
        }
        let (before, now) = evidence(pair, 0, pair.window.open.count);
        self.ask(pair.pointer, What::NewValue, Story::Values, before, now);
        match &pair.window.values {
            Values::Few(values) => self.values(pair, known, values),
            Values::Many => {
                // Which values they are is not known any more, but so many of them are new, each in
                // a result of its own unless a result has several.
                let new = super::bound::MAX_VALUES + 1 - known.len();
                let single = !pair.pointer.contains(ITEMS) && !pair.pointer.contains(MEMBERS);
                let (before, now) = evidence(pair, 0, if single { new as u64 } else { 1 });
                self.ask(pair.pointer, What::NewValue, Story::Values, before, now);
            }
        }
    }

    /// Asks about every value that is kept.
    fn all_values(&mut self, pair: Pair<'_>) {
        match (&pair.baseline.values, &pair.window.values) {
            (Values::Few(known), Values::Few(values)) => self.values(pair, known, values),
            (Values::Many, _) | (_, Values::Many) => {}
        }
    }

    fn values(&mut self, pair: Pair<'_>, known: &[Entry<ValueHash>], values: &[Entry<ValueHash>]) {
        for value in union(known, values) {
            let (before, now) = evidence(pair, count_of(known, value), count_of(values, value));
            let what = if before.seen == 0 {
                What::NewValue
            } else {
                What::Values
            };
            self.ask(pair.pointer, what, Story::Values, before, now);
        }
    }

    fn ask(
        &mut self,
        pointer: &str,
        what: What,
        story: Story,
        baseline: Evidence,
        window: Evidence,
    ) {
        let question = Question::new(self.channel, pointer, (what, story), (baseline, window));
        self.push(question);
    }

    fn certain(
        &mut self,
        pointer: &str,
        what: What,
        story: Story,
        baseline: Evidence,
        window: Evidence,
    ) {
        let question = Question::new(self.channel, pointer, (what, story), (baseline, window));
        self.push(Question {
            certain: true,
            ..question
        });
    }

    fn push(&mut self, question: Question) {
        if question.is_open() {
            self.questions.push(question);
        }
    }
}

/// Counts among the results that have the path.
const fn evidence(pair: Pair<'_>, before: u64, now: u64) -> (Evidence, Evidence) {
    let before = Evidence {
        seen: before,
        of: pair.baseline.n,
    };
    (
        before,
        Evidence {
            seen: now,
            of: pair.window.n,
        },
    )
}

fn described(cell: Cell, new: bool) -> (What, Story) {
    match (cell.facet, cell.as_format()) {
        (Facet::Magnitude, _) => (What::Range, Story::Size),
        (Facet::Format, Some(format)) if new => (What::NewFormat(format), Story::Format),
        (Facet::Format, Some(format)) => (What::Format(format), Story::Format),
        (Facet::Format, None) | (Facet::Items | Facet::Length | Facet::Lines, _) => {
            (What::Length, Story::Size)
        }
    }
}

/// The names of the children of either node, in order.
fn names<'n>(pair: Pair<'n>) -> Vec<&'n str> {
    let children = pair.baseline.children.iter().chain(&pair.window.children);
    let mut names: Vec<&'n str> = children.map(|child| &*child.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn union<T: Copy + Ord>(one: &[Entry<T>], other: &[Entry<T>]) -> Vec<T> {
    let mut all: Vec<T> = one.iter().chain(other).map(|entry| entry.of).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The first of some names, for a message.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|it| format!("`{it}`"))
        .collect();
    let dots = if names.len() > SHOWN { ", …" } else { "" };
    format!("{}{dots}", shown.join(", "))
}

/// A step as JSON pointers write it.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
