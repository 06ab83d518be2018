//! Findings as text, JSON, SARIF, JUnit, GitHub commands or Markdown.

mod change_finding;
mod github;
mod json;
mod junit;
pub(crate) mod markdown;
mod sarif;
mod text;

use serde::Serialize;
use toolwarden_model::{Fingerprint, Severity};

use crate::args::ReportFormat;

pub(crate) use change_finding::{FindingContext, FindingPlace};

/// The rule of a finding that says that something could not be checked.
pub(crate) const NOT_MEASURED: &str = "not-measured";

/// The rule of tools that were pinned instead of compared.
pub(crate) const PINNED: &str = "pinned";

/// What a check has found.
#[derive(Debug, Serialize)]
pub(crate) struct FindingReport {
    /// The versioned name of the JSON form.
    pub(crate) schema: &'static str,
    /// The checks, with the basis of each and its date.
    pub(crate) checks: Vec<ReportCheck>,
    /// Every tool that was checked.
    pub(crate) subjects: Vec<Subject>,
    pub(crate) findings: Vec<ReportFinding>,
}

/// A tool that was checked.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Subject {
    pub(crate) name: String,
    /// The server it belongs to, where a report is about several.
    #[serde(skip)]
    pub(crate) group: Option<String>,
}

impl Subject {
    /// A subject that belongs to no group.
    pub(crate) fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            group: None,
        }
    }
}

/// One thing tools were checked for.
#[derive(Debug, Serialize)]
pub(crate) struct ReportCheck {
    pub(crate) name: String,
    /// The date and source of what it compares with; none for a check that needs no source.
    #[serde(flatten)]
    pub(crate) basis: Option<CheckBasis>,
    /// How many tools it rejects.
    pub(crate) rejected: usize,
    /// The word for that, for a person.
    #[serde(skip)]
    pub(crate) outcome: &'static str,
    /// The number of tools that were checked.
    pub(crate) tools: usize,
    /// The levels that make the command fail.
    #[serde(skip)]
    pub(crate) failing: &'static [FindingLevel],
}

/// Where the knowledge behind a check comes from.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CheckBasis {
    pub(crate) verified_on: String,
    pub(crate) source: String,
}

/// One finding and its place.
#[derive(Debug, Serialize)]
pub(crate) struct ReportFinding {
    pub(crate) check: String,
    pub(crate) rule: &'static str,
    pub(crate) level: FindingLevel,
    pub(crate) tool: String,
    pub(crate) message: String,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) pointer: String,
    pub(crate) fixable: bool,
    #[serde(skip)]
    pub(crate) detail: FindingDetail,
}

/// What only some formats say of a finding.
#[derive(Clone, Debug, Default)]
pub(crate) struct FindingDetail {
    pub(crate) origin: FindingOrigin,
    /// What the rule is about.
    pub(crate) rule_info: Option<RuleInfo>,
    /// What stays the same when the finding is made again, though lines have moved.
    pub(crate) fingerprint: Option<String>,
    /// The server of the tool, where a report is about several.
    pub(crate) group: Option<String>,
}

/// What the `write_file` of a finding is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FindingOrigin {
    /// A file, with a line that can be shown.
    #[default]
    File,
    /// The name of a server or of a pinned version: there is no file to point to.
    Elsewhere,
}

/// What a rule means and what to do about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuleInfo {
    /// The rule's name in SARIF, after the name of the check.
    pub(crate) id: &'static str,
    /// What it finds, in one sentence.
    pub(crate) finds: &'static str,
    /// What to do about it.
    pub(crate) help: &'static str,
}

impl ReportFinding {
    /// The place for a person.
    fn place(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FindingLevel {
    Error,
    Warning,
    /// Nothing to do; said for completeness.
    Note,
}

/// What stays the same when a finding is made again: a digest of what it is about.
pub(crate) fn fingerprint<'p>(parts: impl IntoIterator<Item = &'p str>) -> String {
    Fingerprint::tagged("toolwarden/finding/v1", parts).to_string()
}

impl From<Severity> for FindingLevel {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Breaking => Self::Error,
            Severity::Warning => Self::Warning,
            Severity::Info => Self::Note,
        }
    }
}

impl FindingLevel {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl FindingReport {
    pub(crate) fn render(&self, format: ReportFormat) -> String {
        match format {
            ReportFormat::Text => text::render(self),
            ReportFormat::Json => json::render(self),
            ReportFormat::Sarif => sarif::render(self),
            ReportFormat::Junit => junit::render(self),
            ReportFormat::Github => github::render(self),
            ReportFormat::Markdown => markdown::render(self),
        }
    }
}
