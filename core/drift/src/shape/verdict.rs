use std::collections::BTreeMap;

use super::cell::{Cell, Type};
use super::channel::Channel;
use super::drift::{Certainty, Confidence, Evidence, ShapeChange, ShapeDrift, Sighting, What};
use super::exact::{Table, distance, level};

/// Shares closer than this (Cohen's h) are not called drift, however many results show it.
const MIN_DISTANCE: f64 = 0.2;

/// A null or a gap that chance explains more often than this is not certain.
const ONCE_IN_A_WHILE: f64 = 0.01;

/// One thing asked about both shapes.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) channel: Channel,
    pub(super) pointer: String,
    pub(super) what: What,
    pub(super) story: Story,
    /// The bucket of a size or magnitude it is about.
    pub(super) bucket: Option<Cell>,
    pub(super) baseline: Evidence,
    pub(super) window: Evidence,
    /// Whether a rule answers it without a test.
    pub(super) certain: bool,
    /// What else a reader should know.
    pub(super) detail: Option<String>,
}

/// Which questions about one path tell the same story. Of those after [`Story::Presence`], the first
/// with an answer is told: another type explains other formats, and another format other lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Story {
    Presence,
    Type,
    Format,
    Values,
    Size,
}

impl Question {
    pub(super) fn new(
        channel: Channel,
        pointer: &str,
        (what, story): (What, Story),
        (baseline, window): (Evidence, Evidence),
    ) -> Self {
        Self {
            channel,
            pointer: pointer.to_owned(),
            what,
            story,
            bucket: None,
            baseline,
            window,
            certain: false,
            detail: None,
        }
    }

    /// Whether a member that was always there is there no more.
    fn is_loss(&self) -> bool {
        let always = self.baseline.seen == self.baseline.of;
        match self.what {
            What::Missing => self.window.seen == self.window.of,
            What::Presence => always && self.window.seen == 0,
            _ => false,
        }
    }

    /// Whether the two sides could differ at all.
    pub(super) const fn is_open(&self) -> bool {
        let seen = self.baseline.seen > 0 || self.window.seen > 0;
        let unseen = self.baseline.seen < self.baseline.of || self.window.seen < self.window.of;
        seen && unseen && self.baseline.of > 0 && self.window.of > 0
    }

    /// Whether it is about something the baseline has not got.
    const fn is_first(&self) -> bool {
        self.baseline.seen == 0 && self.window.seen > 0
    }

    /// Whether it is worth a note: a length seen for the first time is not.
    const fn is_news(&self) -> bool {
        match self.what {
            What::NewType(_)
            | What::NewField
            | What::NewFormat(_)
            | What::NewValue
            | What::Errors
            | What::Channel => self.is_first(),
            What::GoneType(_)
            | What::Types(_)
            | What::Missing
            | What::Presence
            | What::Replaced
            | What::Format(_)
            | What::Fractions
            | What::Values
            | What::Range
            | What::Length => false,
        }
    }

    fn effect(&self) -> f64 {
        self.window.share() - self.baseline.share()
    }

    fn place(&self) -> (Channel, String) {
        (self.channel, self.pointer.clone())
    }
}

/// Answers the questions and tells each story once; gives the level at which they were tested too.
pub(super) fn decide(questions: Vec<Question>, options: &Confidence) -> (ShapeDrift, f64) {
    let tables: Vec<Table> = questions
        .iter()
        .map(|it| Table::of(it.baseline, it.window))
        .collect();
    let asked = questions
        .iter()
        .zip(&tables)
        .filter(|(question, _)| !question.certain);
    let least: Vec<f64> = asked.map(|(_, table)| table.least_p_value()).collect();
    let level = level(options.spending(), &least);

    let answered = questions.into_iter().zip(tables).map(|(question, table)| {
        let certainty = answer(&question, table, level);
        (question, certainty)
    });
    (tell(answered), level)
}

/// Takes every difference for a change, but for those of lengths and magnitudes.
pub(super) fn decide_exactly(
    questions: Vec<Question>,
    baseline_results: u64,
    window_results: u64,
) -> ShapeDrift {
    let differs = |question: &Question| {
        let (before, now) = (question.baseline, question.window);
        if question.story == Story::Size {
            return false;
        }
        if baseline_results == window_results {
            let share = |one: Evidence, of: Evidence| u128::from(one.seen) * u128::from(of.of);
            return share(before, now) != share(now, before);
        }
        // Not the same calls: what never came comes now, or what always came does not.
        let never = before.seen == 0 && now.seen > 0;
        let always = before.seen == before.of && now.seen < now.of;
        never || always
    };
    tell(questions.into_iter().map(|question| {
        let certainty = differs(&question).then_some(Certainty::Certain);
        (question, certainty)
    }))
}

/// Tells each story once. A question without an answer may be worth a note.
fn tell(answered: impl Iterator<Item = (Question, Option<Certainty>)>) -> ShapeDrift {
    let mut told: BTreeMap<(Channel, String, bool), (Question, Certainty)> = BTreeMap::new();
    let mut unsure = Vec::new();
    for (question, certainty) in answered {
        let Some(certainty) = certainty else {
            unsure.push(question);
            continue;
        };
        let (channel, pointer) = question.place();
        let place = (channel, pointer, question.story > Story::Presence);
        let better = told.get(&place).is_none_or(|(other, sure)| {
            precedence(&question, certainty) < precedence(other, *sure)
        });
        if better {
            told.insert(place, (question, certainty));
        }
    }
    let notes = notes(&unsure, &told);
    let repeated = |question: &Question| {
        let place = (
            Channel::Structured,
            question.pointer.clone(),
            question.story > Story::Presence,
        );
        // Servers repeat `structuredContent` as JSON in a text.
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
    }
}

/// Whether tools commonly do it once in a while: a null or a gap in a hundred results is no news by
/// itself, a text among numbers is.
const fn is_often_rare(what: What) -> bool {
    matches!(what, What::NewType(Type::Null) | What::Missing)
}

fn answer(question: &Question, table: Table, level: f64) -> Option<Certainty> {
    if question.certain && !(is_often_rare(question.what) && table.p_value() > ONCE_IN_A_WHILE) {
        return Some(Certainty::Certain);
    }
    if distance(question.baseline.share(), question.window.share()) < MIN_DISTANCE {
        return None;
    }
    let p = table.p_value();
    let effect = question.effect();
    (p <= level).then_some(Certainty::Significant { p, effect })
}

/// What is told first: the earlier story, then news, then what is surest.
fn precedence(question: &Question, certainty: Certainty) -> (Story, bool, u64) {
    let p = match certainty {
        Certainty::Certain => 0.0,
        Certainty::Significant { p, .. } => p,
    };
    // The bits of floats that are not negative are in the order of the floats.
    (question.story, !question.is_first(), p.to_bits())
}

fn change(question: &Question, certainty: Certainty) -> ShapeChange {
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

/// News not sure enough, once per path and kind, and not where that story is told already.
fn notes(
    unsure: &[Question],
    told: &BTreeMap<(Channel, String, bool), (Question, Certainty)>,
) -> Vec<Sighting> {
    let mut notes: BTreeMap<(Channel, &str, What), &Question> = BTreeMap::new();
    for question in unsure
        .iter()
        .filter(|question| question.is_news() || question.is_loss())
    {
        let (channel, pointer) = question.place();
        if told.contains_key(&(channel, pointer, question.story > Story::Presence)) {
            continue;
        }
        let place = (channel, question.pointer.as_str(), question.what);
        let kept = notes.entry(place).or_insert(question);
        if question.window.seen > kept.window.seen {
            *kept = question;
        }
    }
    notes.into_values().map(sighting).collect()
}

fn sighting(question: &Question) -> Sighting {
    Sighting {
        channel: question.channel,
        pointer: question.pointer.clone(),
        what: question.what,
        baseline: question.baseline,
        window: question.window,
        message: message(question),
    }
}

fn message(question: &Question) -> String {
    let Question {
        channel,
        pointer,
        what,
        story: _,
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
    format!("{channel}: `{place}`: {what}{from}: {window} now, {baseline} in the baseline{detail}")
}
