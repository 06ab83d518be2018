//! Puts the same tools and cases to several providers, and keeps what they answered byte for byte.
//!
//! What an answer means is told by `toolwarden-canon`, what a run amounts to and how two differ by
//! `toolwarden-drift`; here is what is asked, of whom, and how.

mod contract;
mod file;
mod provider;
mod secret;
mod suite;

pub mod capture;
mod dialect;
mod exchange;
mod observe;
pub mod replay;
mod run;

pub use contract::Contract;
pub use dialect::{
    DialectError, DialectReport, Family, FamilyOutcome, FamilyReport, dialect, families,
};
pub use exchange::{Exchange, SentRequest};
pub use file::{ProbeFileError, Problem};
pub use observe::Observer;
pub use provider::{
    FIXTURES, Headers, InvalidBaseUrl, InvalidProvider, MissingKey, MissingVariable, Provider,
    UnknownProvider, fixture, presets,
};
pub use run::{MissingSecret, Progress, Run, Settings, Target, TrialKey, offline, run, run_until};
pub use secret::{Key, Redactor};
pub use suite::{Case, Sampling, Suite};
