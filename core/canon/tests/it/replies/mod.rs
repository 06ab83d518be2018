//! Responses of providers, and the replies read from them.

mod arguments;
mod cases;
mod hostile;
mod large;
mod leaks;
mod refusals;
mod streams;

use std::path::PathBuf;

use toolwarden_canon::reply::{ReplyLimits, read};
use toolwarden_model::reply::{NotMeasured, Reply, ReplyNote, StreamMode, WireApi};

use crate::samples::data;

/// A file with an answer.
struct Case {
    wire: WireApi,
    name: String,
    mode: StreamMode,
    body: Vec<u8>,
}

impl Case {
    fn read(&self) -> Result<Reply, NotMeasured> {
        read(self.wire, self.mode, &self.body, &ReplyLimits::default())
    }
}

/// The answers of one wire, by name.
fn cases(wire: WireApi) -> Vec<Case> {
    let folder = data("replies").join(wire.as_str());
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let case = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let streams = if name.ends_with(".sse") {
            !name.contains(".asked-json.")
        } else {
            name.contains(".asked-stream.")
        };
        let body = std::fs::read(&path).unwrap();
        let mode = if streams {
            StreamMode::Stream
        } else {
            StreamMode::Nonstream
        };
        Case {
            wire,
            name,
            mode,
            body,
        }
    };
    paths.into_iter().map(case).collect()
}

fn all_cases() -> impl Iterator<Item = Case> {
    WireApi::ALL.into_iter().flat_map(cases)
}

fn case(wire: WireApi, name: &str) -> Case {
    let found = cases(wire).into_iter().find(|case| case.name == name);
    found.expect(name)
}

fn rules(notes: &[ReplyNote]) -> Vec<&'static str> {
    notes.iter().map(|note| note.rule).collect()
}
