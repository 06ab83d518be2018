use std::fmt;

use super::channel::Channel;
use super::exact_test::{ContingencyTable, float, upper_bound};
use super::shape_counter::ValueType;
use super::string_format::StringFormat;

/// How significant a change has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Significance {
    /// The probability of ever reporting drift where there is none, over all comparisons with a
    /// baseline.
    pub alpha: f64,
    /// The number of this comparison with the baseline, from 1.
    pub look: u64,
}

/// What changed between two shapes, what may have changed, and what could not be measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShapeDrift {
    /// What changed, by channel and path.
    pub changes: Vec<ShapeChange>,
    /// What was seen for the first time, but not often enough to be called a change.
    pub notes: Vec<ShapeNote>,
    /// What these results cannot show.
    pub limits: Vec<ShapeLimit>,
    /// Whether the results do not depend on chance, so that every difference is a change.
    pub is_exact: bool,
}

/// One change of the results of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeChange {
    /// The part of the result.
    pub channel: Channel,
    /// The path, `/items/[]/price`; empty for the whole.
    pub pointer: String,
    /// What changed there.
    pub what: ShapeChangeKind,
    /// How certain it is.
    pub certainty: Certainty,
    /// In how many results of the baseline it was seen.
    pub baseline: Frequency,
    /// In how many results of the window it was seen.
    pub window: Frequency,
    /// One sentence for the reader.
    pub message: String,
}

/// A new observation that is too rare to be called a change.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeNote {
    /// The part of the result.
    pub channel: Channel,
    /// The path.
    pub pointer: String,
    /// What was seen there.
    pub what: ShapeChangeKind,
    /// In how many results of the baseline it was seen.
    pub baseline: Frequency,
    /// In how many results of the window it was seen.
    pub window: Frequency,
    /// One sentence for the reader.
    pub message: String,
}

/// The kind of a change of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShapeChangeKind {
    /// A type not seen before.
    NewType(ValueType),
    /// A type no longer seen.
    GoneType(ValueType),
    /// A type seen more or less often.
    Types(ValueType),
    /// A member that was always present is missing.
    Missing,
    /// A member is present more or less often.
    Presence,
    /// A member not seen before.
    NewField,
    /// None of the current members was seen before.
    Replaced,
    /// Strings of a format not seen before.
    NewFormat(StringFormat),
    /// Strings of a format more or less often.
    Format(StringFormat),
    /// Numbers with a fraction more or less often.
    Fractions,
    /// A value not seen before, where few values were seen.
    NewValue,
    /// A value more or less often.
    Values,
    /// Numbers of another magnitude.
    Range,
    /// Strings, texts or arrays of another length.
    Length,
    /// Errors more or less often.
    Errors,
    /// A part of the result that is new, gone, or present more or less often.
    Channel,
    /// Arrays or objects that are now always empty.
    Emptied,
    /// A boolean that had always the other value.
    Flipped,
    /// Texts that read like an error.
    ErrorText,
    /// Other content, in results that do not depend on chance.
    Content,
    /// More or fewer results, where they do not depend on chance.
    Fixtures,
}

/// How certain a change is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Certainty {
    /// Decided by a rule without a test: it never occurred in many results, and now it does.
    Certain,
    /// A test found it to be more than chance.
    Significant {
        /// The probability of so large a difference by chance.
        p: f64,
        /// By how much the share of results changed, from −1 to 1.
        effect: f64,
    },
}

/// In how many results something was observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frequency {
    /// Results in which it was seen.
    pub seen: u64,
    /// Results in which it could have been seen.
    pub of: u64,
}

/// One of the two shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeSide {
    /// The reference.
    Baseline,
    /// The current results.
    Window,
}

/// What a comparison could not measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ShapeLimit {
    /// Something that no result of a side had may still occur.
    Unseen {
        /// The side.
        side: ShapeSide,
        /// Its results.
        results: u64,
        /// The share of results that may have it, with a confidence of 95 %.
        upper: f64,
    },
    /// Even a change of every result could not be distinguished from chance.
    TooFew {
        /// Results of the baseline.
        baseline: u64,
        /// Results of the window.
        window: u64,
        /// Results the baseline needs.
        needed_baseline: u64,
        /// Results the window needs.
        needed_window: u64,
    },
    /// A shape was full and left something out.
    Truncated(ShapeSide),
    /// Values were not compared: one shape has none, or they are hashed under different keys.
    NoValues,
    /// The results could not be compared exactly, because one shape has no hashes of them.
    NotExact {
        /// The number of results of which a shape has hashes.
        most: u64,
    },
}

impl Default for Significance {
    fn default() -> Self {
        Self {
            alpha: 0.001,
            look: 1,
        }
    }
}

impl Significance {
    /// The part of `alpha` that this comparison may spend. The parts of all comparisons sum up to
    /// `alpha`, so frequent comparisons do not eventually report false drift.
    pub(super) fn alpha_of_comparison(&self) -> f64 {
        let look = float(self.look.max(1));
        let alpha = if self.alpha.is_finite() {
            self.alpha.clamp(0.0, 1.0)
        } else {
            0.0
        };
        alpha / (look * (look + 1.0))
    }
}

impl ShapeDrift {
    /// Whether no change was distinguishable from chance.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Why nothing was measured: no drift was found, and the results were not sufficient to find any.
    #[must_use]
    pub fn too_few(&self) -> Option<&ShapeLimit> {
        let limit = self.limits.iter().find(|limit| {
            matches!(
                limit,
                ShapeLimit::TooFew { .. }
                    | ShapeLimit::NotExact { .. }
                    | ShapeLimit::Unseen { results: 0, .. }
            )
        });
        limit.filter(|_| self.is_empty())
    }
}

impl ShapeChange {
    /// The probability of so large a difference by chance. A certain change was decided by a rule
    /// without a test, and may be one result that was bound to occur.
    #[must_use]
    pub fn chance(&self) -> f64 {
        ContingencyTable::of(self.baseline, self.window).p_value()
    }
}

impl Frequency {
    /// The share of results, 0 where there are none.
    #[must_use]
    pub fn share(self) -> f64 {
        if self.of == 0 {
            0.0
        } else {
            float(self.seen) / float(self.of)
        }
    }
}

impl ShapeLimit {
    pub(super) fn unseen(side: ShapeSide, results: u64) -> Self {
        Self::Unseen {
            side,
            results,
            upper: upper_bound(results),
        }
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.seen, self.of)
    }
}

impl fmt::Display for ShapeSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Baseline => "baseline",
            Self::Window => "window",
        })
    }
}

impl fmt::Display for ShapeChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewType(kind) => write!(f, "new type {}", kind.as_str()),
            Self::GoneType(kind) => write!(f, "type {} no longer seen", kind.as_str()),
            Self::Types(kind) => write!(f, "share of type {}", kind.as_str()),
            Self::Missing => f.write_str("lacking where it was always there"),
            Self::Presence => f.write_str("share of results with this member"),
            Self::NewField => f.write_str("new member"),
            Self::Replaced => f.write_str("every member was replaced"),
            Self::NewFormat(format) => write!(f, "new format {}", format.as_str()),
            Self::Format(format) => write!(f, "share of format {}", format.as_str()),
            Self::Fractions => f.write_str("share of numbers with a fraction"),
            Self::NewValue => f.write_str("new value"),
            Self::Values => f.write_str("share of a value"),
            Self::Range => f.write_str("share of numbers"),
            Self::Length => f.write_str("share of lengths"),
            Self::Errors => f.write_str("share of errors"),
            Self::Channel => f.write_str("share of results with this part"),
            Self::Emptied => f.write_str("always empty"),
            Self::Flipped => f.write_str("always the other boolean"),
            Self::ErrorText => f.write_str("text that reads like an error"),
            Self::Content => f.write_str("other content"),
            Self::Fixtures => f.write_str("other fixtures"),
        }
    }
}

impl fmt::Display for ShapeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unseen { side, results: 0, .. } => write!(f, "the {side} has no results, so nothing can be compared"),
            Self::Unseen { side, results, upper } => write!(
                f,
                "what {results} {} of the {side} did not show may still be in up to {:.1} % of them",
                if *results == 1 { "result" } else { "results" },
                upper * 100.0
            ),
            Self::TooFew { baseline, window, needed_baseline, needed_window } => write!(
                f,
                "too few results to exclude chance: {window} against {baseline} in the baseline; \
                 {needed_window} against {needed_baseline} suffice"
            ),
            Self::Truncated(side) => write!(f, "the {side} is full: some paths or values are not compared"),
            Self::NotExact { most } => write!(
                f,
                "the results cannot be compared exactly: one side has no hashes of them; \
                 a store has hashes of up to {most} results, a lock file or an older version has none"
            ),
            Self::NoValues => f.write_str("values are not compared: one side has none, or they are hashed under different keys"),
        }
    }
}
