//! Models compared by what they do with the same tools and cases.
//!
//! [`run_suite`] sends a [`ProbeSuite`] to a [`Provider`] and captures the replies byte for byte. [`build_snapshot`]
//! reduces them to rates, and [`compare`] decides whether another model can replace the first.
//!
//! ```
//! use toolwarden::probe::{Confidence, Rate, wilson};
//!
//! let interval = wilson(Rate::new(9, 10), Confidence::default());
//! assert!(interval.lower < 0.9 && 0.9 < interval.upper);
//! ```

pub use toolwarden_model::{Change, ChangeClass, ChangeId, ChangeKind, Severity, Verdict};
pub use toolwarden_probe::{
    ApiKey, ContractFile, Exchange, ProbeCase, ProbeFileError, ProbeSampling, ProbeSuite,
    ProbeTarget, Provider, RunProgress, RunSettings, SentRequest, SuiteRun, UnknownProvider,
    capture, presets, replay, run_fixture, run_suite,
};
pub use toolwarden_trials::{
    Confidence, Incomparable, Interval, Metric, MetricComparison, Options, PassCriterion,
    PinnedContract, Rate, Snapshot, SnapshotComparison, Trial, TrialChange, TrialEvidence,
    TrialOrigin, TrialRule, build_snapshot, compare, compare_with_pinned, conformance,
    verdict_word, wilson,
};
