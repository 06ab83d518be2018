use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::lines::{CaptureHead, CaptureLine};
use super::{Capture, CaptureError};
use crate::run::SuiteRun;

/// Writes one file for each run into a folder, which is created if needed. Each file is written
/// completely or not at all. Keys were masked when the bytes were received.
///
/// # Errors
/// A file cannot be written.
pub fn write(folder: &Path, suite: &str, runs: &[SuiteRun]) -> Result<Vec<PathBuf>, CaptureError> {
    std::fs::create_dir_all(folder).map_err(|source| CaptureError::Io {
        path: folder.to_owned(),
        source,
    })?;
    let mut taken = BTreeSet::new();
    let mut paths = Vec::new();
    for run in runs {
        let capture = Capture {
            provider: run.provider.name.clone(),
            model_id: run.provider.model_id.clone(),
            wire: run.provider.wire,
            suite: suite.to_owned(),
            exchanges: run.exchanges.clone(),
        };
        let path = folder.join(file_name(&capture.provider, &mut taken));
        write_file(folder, &path, &capture).map_err(|source| CaptureError::Io {
            path: path.clone(),
            source,
        })?;
        paths.push(path);
    }
    Ok(paths)
}

fn write_file(folder: &Path, path: &Path, capture: &Capture) -> io::Result<()> {
    let temporary = tempfile::NamedTempFile::new_in(folder)?;
    let mut out = BufWriter::new(temporary);
    serde_json::to_writer(&mut out, &CaptureHead::of(capture))?;
    out.write_all(b"\n")?;
    for (key, exchange) in &capture.exchanges {
        serde_json::to_writer(&mut out, &CaptureLine::of(key, exchange))?;
        out.write_all(b"\n")?;
    }
    let temporary = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// A unique file name: two providers may have the same name, or a name that contains a path.
fn file_name(provider: &str, taken: &mut BTreeSet<String>) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
    let plain = provider
        .chars()
        .map(|it| if is_plain(it) { it } else { '_' });
    let stem: String = plain.take(100).collect();
    let stem = if stem.is_empty() { "provider" } else { &stem };
    let others = (2..).map(|number| format!("{stem}-{number}.jsonl"));
    let mut names = [format!("{stem}.jsonl")].into_iter().chain(others);
    // Some file systems ignore case.
    let name = names.find(|it| taken.insert(it.to_lowercase()));
    name.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_runs_share_a_file() {
        let mut taken = BTreeSet::new();
        let names = ["kimi", "Kimi", "../etc/x", "kimi", "", "月"];
        let names = names.map(|it| file_name(it, &mut taken));
        let expected = [
            "kimi.jsonl",
            "Kimi-2.jsonl",
            "___etc_x.jsonl",
            "kimi-3.jsonl",
            "provider.jsonl",
            "_.jsonl",
        ];
        assert_eq!(names, expected);
    }
}
