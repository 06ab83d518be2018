//! What a run of a suite against one provider's model amounts to, and whether another model can take
//! its place.
//!
//! [`snapshot`] reduces trials to a [`Snapshot`]; [`compare`] reads two of the same suite;
//! [`against_pinned`] holds one against what a file pins, and [`conformance`] against its own suite.
//! [`tooldrift`] has the format and the comparison of the program of that name.
//!
//! # What is compared
//!
//! A trial either says something about the model or it was not measured; a failure is in no
//! denominator, and two sides of which one has nothing are [`Verdict::Inconclusive`]. Each measured
//! trial is reduced to marks: what it called, whether arguments fit their schemas, how they were
//! sent, what leaked, whether the case's expectation was met. A [`Metric`] is a share of trials by
//! these marks. What is wrong is compared by kind and each thing by itself (a fault by tool, keyword
//! and path, an argument that is not named, a tool that was not offered, markup by family and place;
//! the 64 most frequent of both sides), so that one fault of the old side does not excuse another. A
//! side that never called a tool in a case never called it wrongly there. The trial is the unit and not the call, because calls of one reply stand and fall
//! together.
//!
//! # When a share fails
//!
//! 1. **Structural.** Arguments that do not fit or are no object, an argument the schema does not
//!    name, another encoding, a tool that was not offered, markup that came through, something sent
//!    as a call that is none: what the old
//!    side never did and the new side does in every trial that could show it fails at once, even with
//!    one trial a side. So a smoke run sees what a serving stack does every time. With one or two
//!    trials a model that errs at random is called red by chance now and then; from three on the
//!    error rate below holds.
//! 2. **Established.** Otherwise a drop must be more than chance. The trials of each case are dealt
//!    anew to the two sides 10,000 times with a fixed seed, and in each deal the largest drop of all
//!    shares is taken, in standard deviations (the permutation test of Westfall and Young with the
//!    statistic of Mantel and Haenszel). A share's drop is established if as large a one, in any
//!    share, comes up in at most 4.7 % of deals. That bounds the chance of a false red for all shares
//!    together to 5 %, however many there are, and costs nothing for shares that never vary or that fail in
//!    the same trials. For one share it is Fisher's exact test.
//! 3. It must also not be shown to be harmless: if the interval below lies above the allowed drop,
//!    the share passes.
//!
//! # When a share passes
//!
//! If the lower bound of (new − old) is above −allowed_drop, or no drop was seen at all
//! ([`Evidence::Proven`] takes the latter away). What is structural, or a call that the case forbids,
//! and was never seen on the old side passes only if the interval of every case in which it is seen
//! lies above the allowed drop, and is told as a warning with its rates and cases. A snapshot that
//! says nothing of a tool of its suite passes nothing. Everything else is inconclusive: a drop was seen, and
//! there are too few trials to tell what it is.
//!
//! The interval of one case is Newcombe's, made of two Wilson intervals. Over several cases the
//! differences are averaged with the weights of Mantel and Haenszel, and the interval covers both the
//! one that takes the cases as given and the one that draws the cases anew (cluster bootstrap, 10,000
//! times, fixed seed): with few cases the latter alone would be too narrow.
//!
//! How often an expectation is met is compared over all cases, and for each case of several; the
//! latter can only fail, as among many cases some drop is always seen. One that was always met and
//! never is now is a warning at least.
//!
//! # What only warns or informs
//!
//! The class of ids, the word a model stops with, how many calls one reply has: warnings, when a share
//! turns from always to never or moves by more than chance (Fisher, 1 %). What is structural and always
//! so on both sides is no difference, and a warning. An optional argument there
//! or not, a type the schema allows, text, time and tokens: information with rates. `3.0` is the
//! integer `3`.

pub mod tooldrift;

mod arguments;
mod build;
mod change;
mod compare;
mod conformance;
mod declared;
mod document;
mod fault;
mod mark;
mod pinned;
mod rate;
mod snapshot;
mod statistics;
mod suite;
mod trial;
mod words;

pub use arguments::{ArgumentShape, MAX_DEPTH, MAX_PATHS, PathShape};
pub use build::snapshot;
pub use change::{ContractChange, Severity};
pub use compare::{
    Comparison, Evidence, Incomparable, Metric, MetricComparison, Options, Verdict, compare,
};
pub use conformance::conformance;
pub use declared::Declared;
pub use document::{AnySnapshot, InvalidSnapshot};
pub use mark::{Mark, UnknownMark};
pub use pinned::{Pinned, PinnedTool, against_pinned};
pub use rate::{InvalidRate, Rate};
pub use snapshot::{
    CaseContract, FaultSeen, Histogram, Latency, LeakSeen, NoteSeen, Outcome, Percentiles,
    ReplyContract, Snapshot, TokenSum, Tokens, ToolContract, TrialCounts, UndeclaredTool, Variant,
};
pub use statistics::{Confidence, Interval, difference, fisher_drop, pass_hat, wilson};
pub use suite::{Expect, ExpectedCall, Suite, SuiteCase, SuiteTool};
pub use trial::{Fault, Measured, ObservedCall, Origin, Trial};
