use super::channel::Channel;
use super::counts::{CountEntry, DistinctValues, count_of};
use super::exact_test::SampleSize;
use super::fixtures::FixtureDifference;
use super::member_name::{ITEMS, MEMBERS};
use super::result_shape::{Shape, ShapeVersion};
use super::shape_counter::{CounterKind, ShapeCounter, ValueType};
use super::shape_drift::{
    Frequency, ShapeChangeKind, ShapeDrift, ShapeLimit, ShapeSide, Significance,
};
use super::shape_node::ShapeNode;
use super::significance::{ShapeTest, TestTopic, decide, decide_exactly};
use super::size_limits::{MAX_EXACT_RESULTS, PathCutoffs};
use super::value_key::ValueHash;

/// The number of results that must lack a type before its appearance is certain news.
const MIN_RESULTS_FOR_TYPE: u64 = 30;
/// The number of results that must have a member of a nested object before the loss of all its members
/// is certain news: one or two may be entries of a map. The same number must agree before another type
/// of all results, or their lack of content, is certain news.
const MIN_RESULTS_FOR_LOSS: u64 = 3;
/// The number of simultaneous differences among which a test must still be able to find a change of
/// every result.
const EXPECTED_DIFFERENCES: f64 = 10.0;
/// The number of results that must have a member before its absence is certain news.
const MIN_RESULTS_FOR_PRESENCE: u64 = 100;
/// The share of objects without their most common member up to which an empty object is news: the others
/// may have had other members.
const MAX_UNFILLED: f64 = 0.75;
/// Values belong to an enumeration if there are at most this many,
const MAX_ENUMERATION: usize = 16;
/// and each was seen at least this often on average.
const MIN_REPEATS: u64 = 5;

/// Reports what changed from one shape to another by more than chance explains.
///
/// Fisher's exact test on counts of results answers each question. The probability that any of them
/// errs is at most the part of alpha that this comparison may spend. Four rules need no test: a type
/// never seen in 30 or more results, the absence of a member that 100 or more results all had, an
/// object that has none of its earlier members, and results that all fail, are all empty or are all of
/// another type.
#[must_use]
pub fn compare(baseline: &Shape, window: &Shape, options: &Significance) -> ShapeDrift {
    let (baseline, window) = (baseline.canonical(), window.canonical());
    let survey = ShapeComparison::of(&baseline, &window, ValueScope::Enumerations);
    let values = survey.values;
    let (mut drift, level) = decide(survey.tests, options);
    drift.limits = limits(&baseline, &window, values);
    let telling = level.min(options.alpha_of_comparison() / EXPECTED_DIFFERENCES);
    let needed = SampleSize::at(telling, baseline.results);
    let enough = baseline.results >= needed.baseline && window.results >= needed.window;
    if !enough && drift.is_empty() && !baseline.is_empty() && !window.is_empty() {
        drift.limits.push(ShapeLimit::TooFew {
            baseline: baseline.results,
            window: window.results,
            needed_baseline: needed.baseline.max(baseline.results),
            needed_window: needed.window,
        });
    }
    drift
}

/// Reports every difference between two shapes of few results that do not depend on chance: the same
/// calls, answered the same way every time.
///
/// The hashes of whole results decide whether there is a difference. The rest of the shape says where it
/// is.
#[must_use]
pub fn compare_exactly(baseline: &Shape, window: &Shape) -> ShapeDrift {
    let (baseline, window) = (baseline.canonical(), window.canonical());
    let difference = FixtureDifference::between(&baseline, &window);
    let mut drift = if difference.is_some_and(|it| it.is_none()) {
        ShapeDrift::default()
    } else {
        let survey = ShapeComparison::of(&baseline, &window, ValueScope::All);
        let values = survey.values;
        let mut drift = decide_exactly(survey.tests, baseline.results, window.results);
        drift.limits = limits(&baseline, &window, values);
        drift
    };
    drift.is_exact = true;
    // Such results do not depend on chance, so what was not seen does not occur.
    drift
        .limits
        .retain(|it| !matches!(it, ShapeLimit::Unseen { .. }));
    for (side, shape) in [
        (ShapeSide::Baseline, &baseline),
        (ShapeSide::Window, &window),
    ] {
        if shape.is_empty() {
            drift.limits.push(ShapeLimit::unseen(side, 0));
        }
    }
    if baseline.is_empty() || window.is_empty() {
        return drift;
    }
    match difference {
        Some(difference) => difference.report(&mut drift, &baseline, &window),
        None if drift.is_empty() => drift.limits.push(ShapeLimit::NotExact {
            most: MAX_EXACT_RESULTS,
        }),
        None => {}
    }
    drift
}

fn limits(baseline: &Shape, window: &Shape, values: ValueScope) -> Vec<ShapeLimit> {
    let sides = [(ShapeSide::Baseline, baseline), (ShapeSide::Window, window)];
    let mut limits: Vec<_> = sides
        .iter()
        .map(|(side, shape)| ShapeLimit::unseen(*side, shape.results))
        .collect();
    let full = sides
        .iter()
        .filter(|(_, shape)| shape.cutoffs != PathCutoffs::OPEN);
    limits.extend(full.map(|(side, _)| ShapeLimit::Truncated(*side)));
    if values == ValueScope::None && !baseline.is_empty() && !window.is_empty() {
        limits.push(ShapeLimit::NoValues);
    }
    limits
}

/// Which values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueScope {
    /// None: they are unknown, or hashed under different keys.
    None,
    /// Those of what looks like an enumeration.
    Enumerations,
    /// All stored values.
    All,
}

/// Walks both shapes and collects the tests to run.
struct ShapeComparison {
    cutoffs: PathCutoffs,
    values: ValueScope,
    /// Whether both sides count booleans and texts that read like errors.
    classes: bool,
    /// Whether the digests of both sides cover as many results.
    digests: bool,
    channel: Channel,
    tests: Vec<ShapeTest>,
}

/// The two nodes at one path.
#[derive(Clone, Copy)]
struct NodePair<'n> {
    baseline: &'n ShapeNode,
    window: &'n ShapeNode,
    pointer: &'n str,
}

impl ShapeComparison {
    fn of(baseline: &Shape, window: &Shape, values: ValueScope) -> Self {
        let comparable = baseline.key.is_some() && baseline.key == window.key;
        let mut survey = Self {
            cutoffs: baseline.cutoffs.min(window.cutoffs),
            values: if comparable { values } else { ValueScope::None },
            classes: baseline.version.min(window.version) >= ShapeVersion::V2,
            digests: comparable
                && values == ValueScope::All
                && baseline.exact.is_some()
                && window.exact.is_some()
                && baseline.results == window.results,
            channel: Channel::Value,
            tests: Vec::new(),
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
            // Errors are counted among all results, everything else among results without an error:
            // otherwise more errors would look like less of everything.
            let [before, now] = sides.map(|shape| Frequency {
                seen: results(shape, channel),
                of: match channel {
                    Channel::Error => shape.results,
                    _ => shape.results.saturating_sub(results(shape, Channel::Error)),
                },
            });
            let what = if channel == Channel::Error {
                ShapeChangeKind::Errors
            } else {
                ShapeChangeKind::Channel
            };
            if is_turnover(channel, before, now) {
                self.add_certain("", what, TestTopic::Presence, before, now);
            } else {
                self.add_test("", what, TestTopic::Presence, before, now);
            }
            if let (Some(baseline), Some(window)) = (
                baseline.channels.get(&channel),
                window.channels.get(&channel),
            ) {
                self.path(NodePair {
                    baseline: &baseline.node,
                    window: &window.node,
                    pointer: "",
                });
            }
        }
    }

    fn path(&mut self, pair: NodePair<'_>) {
        self.types(pair);
        self.emptied_object(pair);
        if pair.baseline.rank < self.cutoffs.details {
            self.cells(pair);
            if self.classes {
                self.booleans(pair);
                self.error_text(pair);
            }
        }
        if pair.baseline.rank < self.cutoffs.values {
            self.digest(pair);
            match self.values {
                // The counts of booleans answer the same question.
                _ if self.classes && is_boolean(pair) => {}
                ValueScope::None => {}
                ValueScope::Enumerations => self.enumeration(pair),
                ValueScope::All => self.all_values(pair),
            }
        }
        if self.check_replaced(pair) {
            return;
        }
        for name in names(pair) {
            let child = (pair.baseline.get(name), pair.window.get(name));
            let rank = child.0.or(child.1).map(|node| node.rank);
            if rank.is_none_or(|rank| rank >= self.cutoffs.structure) {
                continue;
            }
            let pointer = format!("{}/{}", pair.pointer, escaped(name));
            self.presence(pair, child, &pointer, name);
            if let (Some(baseline), Some(window)) = child {
                self.path(NodePair {
                    baseline,
                    window,
                    pointer: &pointer,
                });
            }
        }
    }

    /// Tests whether an object has none of its earlier members; the loss of each is then not reported.
    fn check_replaced(&mut self, pair: NodePair<'_>) -> bool {
        let objects = |node: &ShapeNode| node.types.get(ValueType::Object);
        let (before, now) = (objects(pair.baseline), objects(pair.window));
        let whole = pair.pointer.is_empty() || pair.pointer.strip_prefix('/') == Some(ITEMS);
        let enough = if whole { 1 } else { MIN_RESULTS_FOR_LOSS };
        let members = |node: &'_ ShapeNode| -> Vec<String> {
            let children = node.children.iter().filter(|it| &*it.name != ITEMS);
            children.map(|it| it.name.to_string()).collect()
        };
        let (gone, new) = (members(pair.baseline), members(pair.window));
        // A map has different members every time. An object has a member that was always present.
        let is_object = pair
            .baseline
            .children
            .iter()
            .any(|it| it.is_member() && it.full >= before);
        let mut children = pair.baseline.children.iter().chain(&pair.window.children);
        let complete = children.all(|it| it.rank < self.cutoffs.structure);
        let disjoint = !new.is_empty() && !new.iter().any(|name| gone.contains(name));
        let replaced = is_object && complete && disjoint && before >= enough && now > 0;
        // Occasional failures take many forms.
        if !replaced || self.channel == Channel::Error {
            return false;
        }
        let (before, now) = (
            Frequency {
                seen: 0,
                of: before,
            },
            Frequency { seen: now, of: now },
        );
        let evidence = (before, now);
        let question = ShapeTest::new(
            self.channel,
            pair.pointer,
            (ShapeChangeKind::Replaced, TestTopic::Type),
            evidence,
        );
        self.push(ShapeTest {
            certain: true,
            detail: Some(format!("gone: {}; new: {}", listed(&gone), listed(&new))),
            ..question
        });
        true
    }

    fn types(&mut self, pair: NodePair<'_>) {
        // A null means that there is no value, as a missing member does, so the types are counted among
        // the other values.
        let values = |node: &ShapeNode| node.n.saturating_sub(node.types.get(ValueType::Null));
        let [values_before, values_now] = [pair.baseline, pair.window].map(values);
        for kind in ValueType::ALL
            .into_iter()
            .filter(|kind| *kind != ValueType::Fraction)
        {
            let (before, now) = (pair.baseline.types.get(kind), pair.window.types.get(kind));
            let (mut before, mut now) = evidence(pair, before, now);
            if kind != ValueType::Null {
                // A result with both has them in different items of an array.
                before.of = values_before.max(before.seen);
                now.of = values_now.max(now.seen);
            }
            let what = match (before.seen, now.seen) {
                (0, _) => ShapeChangeKind::NewType(kind),
                (_, 0) => ShapeChangeKind::GoneType(kind),
                _ => ShapeChangeKind::Types(kind),
            };
            let unseen = before.seen == 0 && now.seen > 0;
            // Every whole result has a type that no earlier result had.
            let whole = pair.pointer.is_empty() && self.channel != Channel::Error;
            let turned = whole && before.of >= MIN_RESULTS_FOR_LOSS && is_every(now);
            if unseen && (turned || before.of >= MIN_RESULTS_FOR_TYPE) {
                self.add_certain(pair.pointer, what, TestTopic::Type, before, now);
            } else {
                self.add_test(pair.pointer, what, TestTopic::Type, before, now);
            }
        }
        let [before, now] = [pair.baseline, pair.window].map(|node| Frequency {
            seen: node.types.get(ValueType::Fraction),
            of: node.types.get(ValueType::Number),
        });
        self.add_test(
            pair.pointer,
            ShapeChangeKind::Fractions,
            TestTopic::Format,
            before,
            now,
        );
    }

    /// Tests a member; a member that is new or gone is reported as a whole.
    fn presence(
        &mut self,
        parent: NodePair<'_>,
        child: (Option<&ShapeNode>, Option<&ShapeNode>),
        pointer: &str,
        name: &str,
    ) {
        if name == ITEMS {
            return;
        }
        let objects = |node: &ShapeNode| node.types.get(ValueType::Object);
        let (of_before, of_now) = (objects(parent.baseline), objects(parent.window));
        let count = |node: Option<&ShapeNode>, of: u64| Frequency {
            seen: node.map_or(0, |node| node.n),
            of,
        };
        let (before, now) = (count(child.0, of_before), count(child.1, of_now));
        let what = if before.seen == 0 {
            ShapeChangeKind::NewField
        } else {
            ShapeChangeKind::Presence
        };
        if name == MEMBERS {
            return self.add_test(pointer, what, TestTopic::Presence, before, now);
        }
        let lacking = |node: Option<&ShapeNode>, of: u64| Frequency {
            seen: of.saturating_sub(node.map_or(0, |node| node.full)),
            of,
        };
        let (lacked, lacks) = (lacking(child.0, of_before), lacking(child.1, of_now));
        if lacked.seen == 0 && lacks.seen > 0 && of_before >= MIN_RESULTS_FOR_PRESENCE {
            return self.add_certain(
                pointer,
                ShapeChangeKind::Missing,
                TestTopic::Presence,
                lacked,
                lacks,
            );
        }
        self.add_test(pointer, what, TestTopic::Presence, before, now);
        // Outside of arrays this is the same test the other way round.
        let same =
            |count: Frequency, lack: Frequency| count.seen.saturating_add(lack.seen) == count.of;
        if !same(before, lacked) || !same(now, lacks) {
            self.add_test(
                pointer,
                ShapeChangeKind::Presence,
                TestTopic::Presence,
                lacked,
                lacks,
            );
        }
    }

    /// Tests whether an object without a fixed member, such as a map, is now always empty. The loss of a
    /// member that was always present is reported as such.
    fn emptied_object(&mut self, pair: NodePair<'_>) {
        let objects = |node: &ShapeNode| node.types.get(ValueType::Object);
        let (of_before, of_now) = (objects(pair.baseline), objects(pair.window));
        let mut members = pair.baseline.children.iter();
        let fixed = members.any(|it| it.is_member() && it.full >= of_before);
        let named = |node: &ShapeNode| {
            let members = node.children.iter().filter(|it| &*it.name != ITEMS);
            members.map(|it| it.n).max()
        };
        let (Some(filled), None, false) = (named(pair.baseline), named(pair.window), fixed) else {
            return;
        };
        // At least as many were filled as had the most common member.
        let before = Frequency {
            seen: of_before.saturating_sub(filled),
            of: of_before,
        };
        let now = Frequency {
            seen: of_now,
            of: of_now,
        };
        if before.share() <= MAX_UNFILLED && self.cutoffs.structure == PathCutoffs::OPEN.structure {
            self.add_test(
                pair.pointer,
                ShapeChangeKind::Emptied,
                TestTopic::Loss,
                before,
                now,
            );
        }
    }

    fn booleans(&mut self, pair: NodePair<'_>) {
        let count = |node: &ShapeNode, value: bool| Frequency {
            seen: node.cell(ShapeCounter::boolean(value)),
            of: node.types.get(ValueType::Boolean),
        };
        let of = |value: bool| (count(pair.baseline, value), count(pair.window, value));
        let (yes, no) = (of(true), of(false));
        // A value that is new says more than one that is gone.
        let ((before, now), (other_before, other_now)) =
            if no.0.seen == 0 { (no, yes) } else { (yes, no) };
        if before.seen == 0 && other_now.seen == 0 {
            let what = ShapeChangeKind::Flipped;
            return self.add_test(pair.pointer, what, TestTopic::Loss, before, now);
        }
        let what = if before.seen == 0 {
            ShapeChangeKind::NewValue
        } else {
            ShapeChangeKind::Values
        };
        self.add_test(pair.pointer, what, TestTopic::Values, before, now);
        // Outside of arrays this is the same test the other way round.
        let same = |one: Frequency, other: Frequency| one.seen + other.seen == one.of;
        if !same(before, other_before) || !same(now, other_now) {
            let what = ShapeChangeKind::Values;
            self.add_test(
                pair.pointer,
                what,
                TestTopic::Values,
                other_before,
                other_now,
            );
        }
    }

    fn error_text(&mut self, pair: NodePair<'_>) {
        let count = |node: &ShapeNode| Frequency {
            seen: node.cell(ShapeCounter::ERROR_TEXT),
            of: node.types.get(ValueType::String),
        };
        let (before, now) = (count(pair.baseline), count(pair.window));
        let topic = if now.share() >= 0.5 && before.share() < 0.5 {
            TestTopic::Loss
        } else {
            TestTopic::Values
        };
        let what = ShapeChangeKind::ErrorText;
        self.add_test(pair.pointer, what, topic, before, now);
    }

    /// Compares values that have no hash of their own.
    fn digest(&mut self, pair: NodePair<'_>) {
        if !self.digests || pair.baseline.digest == pair.window.digest {
            return;
        }
        let (before, now) = evidence(pair, 0, pair.window.n);
        let what = ShapeChangeKind::Content;
        self.add_certain(pair.pointer, what, TestTopic::Values, before, now);
    }

    fn cells(&mut self, pair: NodePair<'_>) {
        let emptied = is_emptied(pair);
        for cell in union(&pair.baseline.cells, &pair.window.cells) {
            let of = |node: &ShapeNode| match cell.kind {
                CounterKind::Items => node.types.get(ValueType::Array),
                CounterKind::Format | CounterKind::Length | CounterKind::Lines => {
                    node.types.get(ValueType::String)
                }
                CounterKind::Magnitude => node.types.get(ValueType::Number),
                CounterKind::Boolean | CounterKind::ErrorText => 0,
            };
            let count = |node: &ShapeNode| Frequency {
                seen: node.cell(cell),
                of: of(node),
            };
            let (before, now) = (count(pair.baseline), count(pair.window));
            let (what, story) = match described(cell, before.seen == 0) {
                _ if cell == ShapeCounter::NO_ITEMS && emptied => {
                    (ShapeChangeKind::Emptied, TestTopic::Loss)
                }
                Some(described) => described,
                // These are counted for questions of their own.
                None => continue,
            };
            let question = ShapeTest::new(self.channel, pair.pointer, (what, story), (before, now));
            self.push(ShapeTest {
                bucket: (story == TestTopic::Size).then_some(cell),
                ..question
            });
        }
    }

    /// Tests the values of what looks like an enumeration.
    fn enumeration(&mut self, pair: NodePair<'_>) {
        let DistinctValues::Few(known) = &pair.baseline.values else {
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
        self.add_test(
            pair.pointer,
            ShapeChangeKind::NewValue,
            TestTopic::Values,
            before,
            now,
        );
        match &pair.window.values {
            DistinctValues::Few(values) => self.values(pair, known, values),
            DistinctValues::Many => {
                // The values themselves are no longer known, but this many of them are new, each in a
                // result of its own unless a result has several.
                let new = super::size_limits::MAX_VALUES + 1 - known.len();
                let single = !pair.pointer.contains(ITEMS) && !pair.pointer.contains(MEMBERS);
                let (before, now) = evidence(pair, 0, if single { new as u64 } else { 1 });
                self.add_test(
                    pair.pointer,
                    ShapeChangeKind::NewValue,
                    TestTopic::Values,
                    before,
                    now,
                );
            }
        }
    }

    /// Tests every stored value.
    fn all_values(&mut self, pair: NodePair<'_>) {
        match (&pair.baseline.values, &pair.window.values) {
            (DistinctValues::Few(known), DistinctValues::Few(values)) => {
                self.values(pair, known, values)
            }
            (DistinctValues::Many, _) | (_, DistinctValues::Many) => {}
        }
    }

    fn values(
        &mut self,
        pair: NodePair<'_>,
        known: &[CountEntry<ValueHash>],
        values: &[CountEntry<ValueHash>],
    ) {
        for value in union(known, values) {
            let (before, now) = evidence(pair, count_of(known, value), count_of(values, value));
            let what = if before.seen == 0 {
                ShapeChangeKind::NewValue
            } else {
                ShapeChangeKind::Values
            };
            self.add_test(pair.pointer, what, TestTopic::Values, before, now);
        }
    }

    fn add_test(
        &mut self,
        pointer: &str,
        what: ShapeChangeKind,
        story: TestTopic,
        baseline: Frequency,
        window: Frequency,
    ) {
        let question = ShapeTest::new(self.channel, pointer, (what, story), (baseline, window));
        self.push(question);
    }

    fn add_certain(
        &mut self,
        pointer: &str,
        what: ShapeChangeKind,
        story: TestTopic,
        baseline: Frequency,
        window: Frequency,
    ) {
        let question = ShapeTest::new(self.channel, pointer, (what, story), (baseline, window));
        self.push(ShapeTest {
            certain: true,
            ..question
        });
    }

    fn push(&mut self, question: ShapeTest) {
        if question.can_differ() {
            self.tests.push(question);
        }
    }
}

/// Whether every result of the window fails, or is empty, and no earlier result did: that is drift
/// whatever a test says. A single failing call counts, because it may fail permanently, but one empty
/// result does not, because a search without a hit is empty by chance.
const fn is_turnover(channel: Channel, before: Frequency, now: Frequency) -> bool {
    let all = before.seen == 0 && now.seen > 0 && now.seen == now.of;
    match channel {
        Channel::Error => all,
        Channel::Empty => all && before.of >= MIN_RESULTS_FOR_LOSS && is_every(now),
        _ => false,
    }
}

/// Whether something was seen in every one of enough results.
const fn is_every(now: Frequency) -> bool {
    now.seen == now.of && now.of >= MIN_RESULTS_FOR_LOSS
}

/// Counts among the results that have the path.
const fn evidence(pair: NodePair<'_>, before: u64, now: u64) -> (Frequency, Frequency) {
    let before = Frequency {
        seen: before,
        of: pair.baseline.n,
    };
    (
        before,
        Frequency {
            seen: now,
            of: pair.window.n,
        },
    )
}

/// Whether every array is empty now, and most were not.
fn is_emptied(pair: NodePair<'_>) -> bool {
    let empty = |node: &ShapeNode| Frequency {
        seen: node.cell(ShapeCounter::NO_ITEMS),
        of: node.types.get(ValueType::Array),
    };
    let filled = pair.window.get(ITEMS).is_some();
    !filled && empty(pair.window).seen > 0 && empty(pair.baseline).share() < 0.5
}

/// Whether both sides have no other scalars than booleans.
fn is_boolean(pair: NodePair<'_>) -> bool {
    [pair.baseline, pair.window].iter().all(|node| {
        let others = [ValueType::Number, ValueType::String];
        node.types.get(ValueType::Boolean) > 0 && others.iter().all(|it| node.types.get(*it) == 0)
    })
}

fn described(cell: ShapeCounter, new: bool) -> Option<(ShapeChangeKind, TestTopic)> {
    Some(match (cell.kind, cell.as_format()) {
        (CounterKind::Magnitude, _) => (ShapeChangeKind::Range, TestTopic::Size),
        (CounterKind::Format, Some(format)) if new => {
            (ShapeChangeKind::NewFormat(format), TestTopic::Format)
        }
        (CounterKind::Format, Some(format)) => (ShapeChangeKind::Format(format), TestTopic::Format),
        (CounterKind::Format, None)
        | (CounterKind::Items | CounterKind::Length | CounterKind::Lines, _) => {
            (ShapeChangeKind::Length, TestTopic::Size)
        }
        (CounterKind::Boolean | CounterKind::ErrorText, _) => return None,
    })
}

/// The names of the children of either node, in order.
fn names<'n>(pair: NodePair<'n>) -> Vec<&'n str> {
    let children = pair.baseline.children.iter().chain(&pair.window.children);
    let mut names: Vec<&'n str> = children.map(|child| &*child.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn union<T: Copy + Ord>(one: &[CountEntry<T>], other: &[CountEntry<T>]) -> Vec<T> {
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
