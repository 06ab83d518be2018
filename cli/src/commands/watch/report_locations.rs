//! The lines of the repository that a report of a check points to.
//!
//! A tool of a file stands in that file. A tool of a live server, and one that is gone, stand where the
//! repository names them: in the lock file, or in the configuration that names their server.

use std::path::{Path, PathBuf};

use toolwarden_watch::LockLines;

use super::findings;
use super::observe::ObservedServer;
use super::sources::{SourceKind, WatchSource};
use super::store_path;
use crate::args::CheckArgs;
use crate::input::SourceLocation;

/// Where servers and tools are named in the repository.
#[derive(Debug)]
pub(super) enum ReportLocations {
    /// In a lock file.
    Lock(PathBuf, LockLines),
    /// In a configuration, with its text.
    Config(PathBuf, String),
    /// Nowhere.
    Nowhere,
}

impl ReportLocations {
    pub(super) fn from_args(args: &CheckArgs) -> Self {
        if let Some(path) = &args.lock {
            return Self::Lock(path.clone(), store_path::lock_lines(path));
        }
        match &args.pinned.kept.config {
            Some(path) => {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                Self::Config(path.clone(), text)
            }
            None => Self::Nowhere,
        }
    }

    /// Gives every tool of a live server, and every tool without a place of its own, its line.
    pub(super) fn assign(
        &self,
        source: &WatchSource,
        drift: &toolwarden_drift::ListDrift,
        look: &mut ObservedServer,
    ) {
        let results = drift.results.iter();
        let unmeasured = results.filter(|(_, said)| said.too_few().is_some());
        let unmeasured = unmeasured.map(|(tool, _)| tool.clone());
        for name in findings::removed_tools(drift).chain(unmeasured) {
            let place = match &source.kind {
                SourceKind::Files(files) if !matches!(self, Self::Lock(..)) => {
                    let file = files.first().map(PathBuf::as_path).unwrap_or(Path::new(""));
                    SourceLocation::at_line(&file.display().to_string(), 1)
                }
                SourceKind::Files(_) | SourceKind::Schema(..) | SourceKind::Live(_) => {
                    self.tool(source, &name)
                }
            };
            look.locations.entry(name).or_insert(place);
        }
        if matches!(source.kind, SourceKind::Live(_)) && !matches!(self, Self::Nowhere) {
            for (name, place) in &mut look.locations {
                *place = self.tool(source, name);
            }
        }
    }

    /// The line that names a server.
    pub(super) fn server(&self, source: &WatchSource) -> SourceLocation {
        let line = match self {
            Self::Lock(_, lines) => lines.server(&source.key),
            Self::Config(_, text) => line_of(text, &source.key.name),
            Self::Nowhere => None,
        };
        self.location_at(source, line)
    }

    fn tool(&self, source: &WatchSource, tool: &str) -> SourceLocation {
        match self {
            Self::Lock(_, lines) => self.location_at(source, lines.tool(&source.key, tool)),
            Self::Config(..) | Self::Nowhere => self.server(source),
        }
    }

    fn location_at(&self, source: &WatchSource, line: Option<usize>) -> SourceLocation {
        match self {
            Self::Lock(path, _) | Self::Config(path, _) => {
                SourceLocation::at_line(&path.display().to_string(), line.unwrap_or(1))
            }
            Self::Nowhere => SourceLocation::from_text(&source.key.name, ""),
        }
    }
}

/// The first line that names a server, as a key of YAML or JSON or the head of a TOML table.
fn line_of(text: &str, name: &str) -> Option<usize> {
    let (quoted, table) = (format!("\"{name}\""), format!("servers.{name}]"));
    let key = format!("{name}:");
    let mut lines = text.lines();
    let index = lines.position(|line| {
        line.trim_start().starts_with(&key) || line.contains(&quoted) || line.contains(&table)
    });
    index.map(|index| index + 1)
}
