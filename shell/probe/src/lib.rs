//! Sends the same tools and cases to several providers, and captures their responses byte for byte.
//!
//! This crate decides what to send, to which provider, and how. `toolwarden-canon` interprets the
//! responses; `toolwarden-trials` evaluates and compares runs.

mod contract_file;
mod probe_file;
mod provider;
mod secret;
mod suite;

pub mod capture;
mod dialect;
mod exchange;
pub mod replay;
mod reply_observer;
mod run;

pub use contract_file::ContractFile;
pub use dialect::{
    DialectError, DialectReport, KeywordFamily, KeywordFamilyOutcome, KeywordFamilyReport,
    families, probe_dialect,
};
pub use exchange::{Exchange, SentRequest};
pub use probe_file::{ProbeFileError, ProbeFileProblem};
pub use provider::{
    FIXTURES, InvalidBaseUrl, InvalidProvider, MissingKey, MissingVariable, Provider,
    ProviderHeaders, UnknownProvider, fixture, presets,
};
pub use reply_observer::ReplyObserver;
pub use run::{
    MissingSecret, ProbeTarget, RunProgress, RunSettings, SuiteRun, TrialKey, run_fixture,
    run_suite, run_suite_until,
};
pub use secret::{ApiKey, Redactor};
pub use suite::{ProbeCase, ProbeSampling, ProbeSuite};
