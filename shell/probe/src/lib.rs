//! Sends the same tools and cases to several providers, and captures their responses byte for byte.
//!
//! This crate decides what to send, to which provider, and how. `toolwarden-canon` interprets the
//! responses; `toolwarden-trials` evaluates and compares runs.

mod backtracking_patterns;
mod base_url;
mod contract_file;
mod prices;
mod probe_file;
mod probe_target;
mod provider;
mod secret;
mod suite;

pub mod capture;
mod dialect;
mod exchange;
pub mod replay;
mod reply_observer;
mod run;
mod suite_draft;

pub use base_url::InvalidBaseUrl;
pub use contract_file::ContractFile;
pub use dialect::{
    DialectError, DialectReport, KeywordFamily, KeywordFamilyOutcome, KeywordFamilyReport,
    families, probe_dialect,
};
pub use exchange::{Exchange, SentRequest};
pub use prices::{InvalidPrices, ModelPrice, PriceTable};
pub use probe_file::{ProbeFileError, ProbeFileProblem};
pub use probe_target::{MissingSecret, ProbeTarget};
pub use provider::{
    FIXTURES, InvalidProvider, MissingKey, MissingVariable, Provider, ProviderHeaders,
    UnknownProvider, fixture, presets,
};
pub use reply_observer::ReplyObserver;
pub use run::{
    RunProgress, RunSettings, SuiteRun, TrialKey, run_fixture, run_suite, run_suite_until,
};
pub use secret::{ApiKey, Redactor};
pub use suite::{ProbeCase, ProbeSampling, ProbeSuite, ProbeTurn};
pub use suite_draft::{CallExample, SuiteDraft, draft_suite, infer_tools};
