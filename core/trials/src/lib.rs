//! Summarizes a run of a suite against one provider's model, and decides whether another model can
//! replace it.
//!
//! [`build_snapshot`] reduces trials to a [`Snapshot`]. [`compare`] compares two snapshots of the same
//! suite. [`compare_with_pinned`] compares a snapshot with the values that a file pins, and
//! [`conformance`] checks it against its own suite. [`tooldrift`] has the file format and the
//! comparison of the tooldrift program.
//!
#![doc = include_str!("verdicts.md")]

pub mod tooldrift;

mod argument_shape;
mod build;
mod change;
mod compare;
mod conformance;
mod contract_faults;
mod defects;
mod member_declaration;
mod pinned_contract;
mod rate;
mod serde_words;
mod snapshot;
mod snapshot_file;
mod sorted_json;
mod statistics;
mod suite;
mod trial;
mod trial_mark;
mod trial_order;
mod trial_rule;

pub use argument_shape::{ArgumentShape, MAX_DEPTH, MAX_PATHS, PathShape};
pub use build::build_snapshot;
pub use change::{TrialChange, TrialEvidence};
pub use compare::{
    Incomparable, Metric, MetricComparison, Options, PassCriterion, SnapshotComparison, compare,
    verdict_word,
};
pub use conformance::conformance;
pub use contract_faults::{FaultLimits, contract_faults};
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
pub use trial_rule::TrialRule;
