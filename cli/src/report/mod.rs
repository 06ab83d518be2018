//! Findings as text, JSON, SARIF, JUnit, GitHub commands or Markdown.

mod github;
mod json;
mod junit;
pub(crate) mod markdown;
mod sarif;
mod text;

use serde::Serialize;
use toolwarden_model::Fingerprint;

use crate::args::ReportFormat;

/// The rule of a finding that says that something could not be checked.
pub(crate) const NOT_MEASURED: &str = "not-measured";

/// What a check has found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The versioned name of the JSON form.
    pub(crate) schema: &'static str,
    /// What each check was held to, and since when that is known.
    pub(crate) checks: Vec<Check>,
    /// Every tool that was looked at.
    pub(crate) subjects: Vec<String>,
    pub(crate) findings: Vec<Finding>,
}

/// One thing tools were checked for.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) name: String,
    /// Since when what it is held to is known, and from where; nothing for a check that rests on
    /// nobody's word.
    #[serde(flatten)]
    pub(crate) basis: Option<Basis>,
    /// How many tools it rejects.
    pub(crate) rejected: usize,
    /// The word for that, for a person.
    #[serde(skip)]
    pub(crate) outcome: &'static str,
    /// How many tools it looked at.
    pub(crate) tools: usize,
    /// The levels that make the command fail.
    #[serde(skip)]
    pub(crate) failing: &'static [Level],
}

/// Where the knowledge behind a check comes from.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Basis {
    pub(crate) verified_on: String,
    pub(crate) source: String,
}

/// One finding and its place.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) check: String,
    pub(crate) rule: &'static str,
    pub(crate) level: Level,
    pub(crate) tool: String,
    pub(crate) message: String,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) pointer: String,
    pub(crate) fixable: bool,
    #[serde(skip)]
    pub(crate) detail: Detail,
}

/// What only some formats say of a finding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detail {
    pub(crate) origin: FindingOrigin,
    /// What the rule is about.
    pub(crate) about: Option<About>,
    /// What stays the same when the finding is made again, though lines have moved.
    pub(crate) fingerprint: Option<String>,
}

/// What the `file` of a finding is.
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
pub(crate) struct About {
    /// The rule's name in SARIF, after the name of the check.
    pub(crate) id: &'static str,
    /// What it finds, in one sentence.
    pub(crate) finds: &'static str,
    /// What to do about it.
    pub(crate) help: &'static str,
}

impl Finding {
    /// The place for a person.
    fn place(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Error,
    Warning,
    /// Nothing to do; said for completeness.
    Note,
}

/// What stays the same when a finding is made again: a digest of what it is about.
pub(crate) fn fingerprint<'p>(parts: impl IntoIterator<Item = &'p str>) -> String {
    Fingerprint::tagged("toolwarden/finding/v1", parts).to_string()
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl Report {
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
