use std::collections::BTreeMap;

use super::channel::Channel;
use super::exact_test::{ContingencyTable, distance, level};
use super::shape_counter::{ShapeCounter, ValueType};
use super::shape_drift::{
    Certainty, Frequency, ShapeChange, ShapeChangeKind, ShapeDrift, ShapeNote, Significance,
};

/// Shares closer than this (Cohen's h) are not reported as drift, however many results show it.
const MIN_DISTANCE: f64 = 0.2;

/// A null or a missing member with a p-value above this is not certain.
const MAX_CERTAIN_CHANCE: f64 = 0.01;

/// One test of both shapes.
#[derive(Clone, Debug)]
pub(super) struct ShapeTest {
    pub(super) channel: Channel,
    pub(super) pointer: String,
    pub(super) what: ShapeChangeKind,
    pub(super) topic: TestTopic,
    /// The bucket of a size or magnitude it is about.
    pub(super) bucket: Option<ShapeCounter>,
    pub(super) baseline: Frequency,
    pub(super) window: Frequency,
    /// Whether a rule decides it without a test.
    pub(super) certain: bool,
    /// Additional information for the reader.
    pub(super) detail: Option<String>,
}

/// Groups the tests of one path that explain each other. After [`TestTopic::Presence`], only the first
/// topic with a change is reported: another type explains other formats, and another format other
/// lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TestTopic {
    Presence,
    /// Whether there is content at all: not an empty list, an error or the opposite of the usual answer.
    /// It comes before types, because the lack of content is worse than another mix of types.
    Loss,
    Type,
    Format,
    Values,
    Size,
}

impl ShapeTest {
    pub(super) fn new(
        channel: Channel,
        pointer: &str,
        (what, topic): (ShapeChangeKind, TestTopic),
        (baseline, window): (Frequency, Frequency),
    ) -> Self {
        Self {
            channel,
            pointer: pointer.to_owned(),
            what,
            topic,
            bucket: None,
            baseline,
            window,
            certain: false,
            detail: None,
        }
    }

    /// Whether a member that was always present is now absent.
    fn is_loss(&self) -> bool {
        let always = self.baseline.seen == self.baseline.of;
        match self.what {
            ShapeChangeKind::Missing => self.window.seen == self.window.of,
            ShapeChangeKind::Presence => always && self.window.seen == 0,
            _ => false,
        }
    }

    /// Whether the two sides could differ at all.
    pub(super) const fn can_differ(&self) -> bool {
        let seen = self.baseline.seen > 0 || self.window.seen > 0;
        let unseen = self.baseline.seen < self.baseline.of || self.window.seen < self.window.of;
        seen && unseen && self.baseline.of > 0 && self.window.of > 0
    }

    /// Whether it is about something that the baseline does not have.
    const fn is_new(&self) -> bool {
        self.baseline.seen == 0 && self.window.seen > 0
    }

    /// Whether it deserves a note: a length seen for the first time does not.
    const fn is_noteworthy(&self) -> bool {
        match self.what {
            ShapeChangeKind::NewType(_)
            | ShapeChangeKind::NewField
            | ShapeChangeKind::NewFormat(_)
            | ShapeChangeKind::NewValue
            | ShapeChangeKind::Errors
            | ShapeChangeKind::Channel
            | ShapeChangeKind::Emptied
            | ShapeChangeKind::Flipped
            | ShapeChangeKind::ErrorText => self.is_new(),
            ShapeChangeKind::GoneType(_)
            | ShapeChangeKind::Types(_)
            | ShapeChangeKind::Missing
            | ShapeChangeKind::Presence
            | ShapeChangeKind::Replaced
            | ShapeChangeKind::Format(_)
            | ShapeChangeKind::Fractions
            | ShapeChangeKind::Values
            | ShapeChangeKind::Range
            | ShapeChangeKind::Length
            | ShapeChangeKind::Content
            | ShapeChangeKind::Fixtures => false,
        }
    }

    fn effect(&self) -> f64 {
        self.window.share() - self.baseline.share()
    }

    fn location(&self) -> (Channel, String) {
        (self.channel, self.pointer.clone())
    }
}

/// Runs the tests and reports each change once. Also returns the level of the tests.
pub(super) fn decide(questions: Vec<ShapeTest>, options: &Significance) -> (ShapeDrift, f64) {
    let tables: Vec<ContingencyTable> = questions
        .iter()
        .map(|it| ContingencyTable::of(it.baseline, it.window))
        .collect();
    let asked = questions
        .iter()
        .zip(&tables)
        .filter(|(question, _)| !question.certain);
    let least: Vec<f64> = asked.map(|(_, table)| table.least_p_value()).collect();
    let level = level(options.alpha_of_comparison(), &least);

    let answered = questions.into_iter().zip(tables).map(|(question, table)| {
        let certainty = run_test(&question, table, level);
        (question, certainty)
    });
    (report_changes(answered), level)
}

/// Treats every difference as a change.
pub(super) fn decide_exactly(
    questions: Vec<ShapeTest>,
    baseline_results: u64,
    window_results: u64,
) -> ShapeDrift {
    let differs = |question: &ShapeTest| {
        let (before, now) = (question.baseline, question.window);
        if question.certain {
            return true;
        }
        if baseline_results == window_results {
            let share = |one: Frequency, of: Frequency| u128::from(one.seen) * u128::from(of.of);
            return share(before, now) != share(now, before);
        }
        // The calls differ: report only what never occurred before and does now, or always occurred and
        // now does not.
        let never = before.seen == 0 && now.seen > 0;
        let always = before.seen == before.of && now.seen < now.of;
        never || always
    };
    report_changes(questions.into_iter().map(|question| {
        let certainty = differs(&question).then_some(Certainty::Certain);
        (question, certainty)
    }))
}

/// Reports each change once. A test without a result may give a note.
fn report_changes(answered: impl Iterator<Item = (ShapeTest, Option<Certainty>)>) -> ShapeDrift {
    let mut told: BTreeMap<(Channel, String, bool), (ShapeTest, Certainty)> = BTreeMap::new();
    let mut unsure = Vec::new();
    for (question, certainty) in answered {
        let Some(certainty) = certainty else {
            unsure.push(question);
            continue;
        };
        let (channel, pointer) = question.location();
        let place = (channel, pointer, question.topic > TestTopic::Presence);
        let better = told.get(&place).is_none_or(|(other, sure)| {
            precedence(&question, certainty) < precedence(other, *sure)
        });
        if better {
            told.insert(place, (question, certainty));
        }
    }
    let notes = notes(&unsure, &told);
    let repeated = |question: &ShapeTest| {
        let place = (
            Channel::Structured,
            question.pointer.clone(),
            question.topic > TestTopic::Presence,
        );
        // Servers repeat `structuredContent` as JSON in a text block.
        question.channel == Channel::Json
            && told
                .get(&place)
                .is_some_and(|(other, _)| other.what == question.what)
    };
    let changes = told.values().filter(|(question, _)| !repeated(question));
    ShapeDrift {
        changes: changes
            .map(|(question, certainty)| change(question, *certainty))
            .collect(),
        notes,
        limits: Vec::new(),
        is_exact: false,
    }
}

/// Whether tools commonly do this once in a while: a null or a missing member in one of a hundred
/// results is not news by itself, a text among numbers is.
const fn is_often_rare(question: &ShapeTest) -> bool {
    let every = question.pointer.is_empty() && question.window.seen == question.window.of;
    matches!(
        question.what,
        ShapeChangeKind::NewType(ValueType::Null) | ShapeChangeKind::Missing
    ) && !every
}

fn run_test(question: &ShapeTest, table: ContingencyTable, level: f64) -> Option<Certainty> {
    if question.certain && !(is_often_rare(question) && table.p_value() > MAX_CERTAIN_CHANCE) {
        return Some(Certainty::Certain);
    }
    if distance(question.baseline.share(), question.window.share()) < MIN_DISTANCE {
        return None;
    }
    let p = table.p_value();
    let effect = question.effect();
    (p <= level).then_some(Certainty::Significant { p, effect })
}

/// The reporting order: the earlier topic, then new observations, then the most certain.
fn precedence(question: &ShapeTest, certainty: Certainty) -> (TestTopic, bool, u64) {
    let p = match certainty {
        Certainty::Certain => 0.0,
        Certainty::Significant { p, .. } => p,
    };
    // The bit patterns of non-negative floats sort like the floats.
    (question.topic, !question.is_new(), p.to_bits())
}

fn change(question: &ShapeTest, certainty: Certainty) -> ShapeChange {
    ShapeChange {
        channel: question.channel,
        pointer: question.pointer.clone(),
        what: question.what,
        certainty,
        baseline: question.baseline,
        window: question.window,
        message: message(question),
    }
}

/// New observations that are not certain enough, once per path and kind, unless a change already covers
/// them.
fn notes(
    unsure: &[ShapeTest],
    told: &BTreeMap<(Channel, String, bool), (ShapeTest, Certainty)>,
) -> Vec<ShapeNote> {
    let mut notes: BTreeMap<(Channel, &str, ShapeChangeKind), &ShapeTest> = BTreeMap::new();
    for question in unsure
        .iter()
        .filter(|question| question.is_noteworthy() || question.is_loss())
    {
        let (channel, pointer) = question.location();
        if told.contains_key(&(channel, pointer, question.topic > TestTopic::Presence)) {
            continue;
        }
        let place = (channel, question.pointer.as_str(), question.what);
        let kept = notes.entry(place).or_insert(question);
        if question.window.seen > kept.window.seen {
            *kept = question;
        }
    }
    notes.into_values().map(shape_note).collect()
}

fn shape_note(question: &ShapeTest) -> ShapeNote {
    ShapeNote {
        channel: question.channel,
        pointer: question.pointer.clone(),
        what: question.what,
        baseline: question.baseline,
        window: question.window,
        message: message(question),
    }
}

fn message(question: &ShapeTest) -> String {
    let ShapeTest {
        channel,
        pointer,
        what,
        topic: _,
        bucket,
        baseline,
        window,
        certain: _,
        detail,
    } = question;
    let place = if pointer.is_empty() {
        "the whole"
    } else {
        pointer
    };
    let from = bucket
        .map(|cell| format!(" from {cell}"))
        .unwrap_or_default();
    let detail = detail
        .as_ref()
        .map(|detail| format!(" ({detail})"))
        .unwrap_or_default();
    if *what == ShapeChangeKind::Content {
        return format!("{channel}: `{place}`: {what} than in the baseline");
    }
    format!("{channel}: `{place}`: {what}{from}: {window} now, {baseline} in the baseline{detail}")
}
