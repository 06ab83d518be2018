//! Summarizes a run of a suite against one provider's model, and decides whether another model can
//! replace it.
//!
//! [`build_snapshot`] reduces trials to a [`Snapshot`]. [`compare`] compares two snapshots of the same
//! suite. [`compare_with_pinned`] compares a snapshot with the values that a file pins, and
//! [`conformance`] checks it against its own suite. [`tooldrift`] has the file format and the
//! comparison of the tooldrift program.
//!
//! # What is compared
//!
//! A trial either measures the model or is not measured. A failure counts in no denominator, and if one
//! of two sides has no measured trial the verdict is [`SnapshotVerdict::Inconclusive`]. Each measured
//! trial is reduced to marks: which tools it called, whether arguments fit their schemas, how they were
//! encoded, what leaked, whether the case's expectation was met. A [`Metric`] is a share of trials
//! computed from these marks. Faults are compared by kind and also one by one, so that one fault of the
//! old side does not excuse another: a fault by tool, keyword and path, an argument that the schema
//! does not name, a tool that was not offered, markup by family and place. At most the 64 most frequent
//! faults of both sides are compared. A side that never called a tool in a case never called it wrongly
//! there. The unit is the trial and not the call, because the calls of one reply depend on each other.
//!
//! # When a share fails
//!
//! 1. **Structural.** Structural faults are arguments that do not fit the schema or are not an object,
//!    an argument that the schema does not name, another encoding, a tool that was not offered, leaked
//!    markup, and something sent as a call that is not one. If the old side never shows such a fault
//!    and the new side shows it in every trial that could show it, the share fails at once, even with
//!    one trial per side. A smoke run therefore detects what a serving stack does every time. With one
//!    or two trials, a model that errs at random sometimes fails by chance; from three trials on, the
//!    error rate below holds.
//! 2. **Established.** Otherwise a drop must be more than chance. The trials of each case are
//!    reassigned to the two sides 10,000 times with a fixed seed, and each shuffle yields the largest
//!    drop of all shares, in standard deviations (the Westfall-Young permutation test with the
//!    Mantel-Haenszel statistic). A share's drop is established if a drop as large, in any share,
//!    occurs in at most 4.7 % of the shuffles. This bounds the probability of a false failure for all
//!    shares together to 5 %, however many there are. Shares that never vary or that fail in the same
//!    trials cost nothing. For one share it is Fisher's exact test.
//! 3. The drop must also not be proven harmless: if the interval below lies above the allowed drop, the
//!    share passes.
//!
//! # When a share passes
//!
//! A share passes if the lower bound of (new − old) is above −allowed_drop, or if no drop was seen at
//! all ([`PassCriterion::Proven`] removes the second condition). A structural fault, or a call that the
//! case forbids, that the old side never showed passes only if the interval of every case that shows it
//! lies above the allowed drop. It is then reported as a warning with its rates and cases. A snapshot
//! that lacks a tool of its suite passes nothing. Everything else is inconclusive: a drop was seen, and
//! there are too few trials to classify it.
//!
//! The interval of one case is Newcombe's, built from two Wilson intervals. Over several cases the
//! differences are averaged with Mantel-Haenszel weights. The interval then covers both the one that
//! takes the cases as given and the one that resamples the cases (cluster bootstrap, 10,000 times,
//! fixed seed): with few cases the latter alone would be too narrow.
//!
//! How often an expectation is met is compared over all cases and, in a suite of several cases, for
//! each case. The comparison of a single case can only fail, because among many cases some drop is
//! always seen. An expectation that was always met and now never is gives at least a warning.
//!
//! # What only warns or informs
//!
//! The class of ids, the finish reason and the number of calls in one reply give warnings, when a share
//! turns from always to never or moves by more than chance (Fisher, 1 %). A structural fault that both
//! sides always show is not a difference, but gives a warning. The presence of an optional argument, a
//! type that the schema allows, text, time and tokens are information with rates. `3.0` equals the
//! integer `3`.

pub mod tooldrift;

mod argument_shape;
mod build;
mod change;
mod compare;
mod conformance;
mod defects;
mod member_declaration;
mod pinned_contract;
mod rate;
mod serde_words;
mod snapshot;
mod snapshot_file;
mod statistics;
mod suite;
mod trial;
mod trial_mark;

pub use argument_shape::{ArgumentShape, MAX_DEPTH, MAX_PATHS, PathShape};
pub use build::build_snapshot;
pub use change::{ContractChange, Severity};
pub use compare::{
    Incomparable, Metric, MetricComparison, Options, PassCriterion, SnapshotComparison,
    SnapshotVerdict, compare,
};
pub use conformance::conformance;
pub use member_declaration::MemberDeclaration;
pub use pinned_contract::{PinnedContract, PinnedToolContract, compare_with_pinned};
pub use rate::{InvalidRate, Rate};
pub use snapshot::{
    CaseContract, FaultCount, Histogram, LeakCount, MarkCount, NoteCount, Percentiles,
    ReplyContract, ReplyLatency, ShapeVariant, Snapshot, TokenSum, TokenTotals, ToolContract,
    TrialCounts, UndeclaredTool,
};
pub use snapshot_file::{InvalidSnapshot, VersionedSnapshot};
pub use statistics::{Confidence, Interval, difference, fisher_drop, pass_hat, wilson};
pub use suite::{CallExpectation, ExpectedCall, SuiteCase, SuiteTool, TrialSuite};
pub use trial::{ArgumentFault, MeasuredReply, ObservedCall, Trial, TrialOrigin};
pub use trial_mark::{TrialMark, UnknownTrialMark};
