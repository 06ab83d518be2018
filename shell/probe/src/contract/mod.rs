//! Whom a suite is put to and what has to come out, as a file in a repository.

mod expected;

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolwarden_drift::contract::Pinned;
use toolwarden_files::as_document;
use toolwarden_model::closest;
use toolwarden_model::document::{Key, Mistake, Placed, Reader};
use toolwarden_model::json::Pointer;

use crate::file::{self, ProbeFileError, Problem};
use crate::provider::Provider;
use crate::provider::read::provider;
use crate::suite::Suite;

const ROOT: &[Key] = &[
    Key::new("version"),
    Key::new("suite"),
    Key::new("providers"),
    Key::new("expected"),
];

/// A contract file.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    /// The file.
    pub path: PathBuf,
    /// The file of the suite.
    pub suite: PathBuf,
    /// Whom the suite is put to, in the order of the file.
    pub providers: Vec<Provider>,
    /// What has to come out, as far as it is said.
    pub expected: Option<Pinned>,
}

impl Contract {
    /// Reads a contract file and checks it against its suite.
    ///
    /// # Errors
    /// The file or its suite cannot be used; every mistake is told.
    pub fn load(path: &Path) -> Result<Self, ProbeFileError> {
        Self::of_text(&file::read(path)?, path)
    }

    /// As [`Self::load`], from a text that stands in the file of a path.
    ///
    /// # Errors
    /// The text or the suite it names cannot be used; every mistake is told.
    pub fn of_text(text: &str, path: &Path) -> Result<Self, ProbeFileError> {
        let document = as_document(text, path)?;
        let mut reader = Reader::default();
        let read = read(&mut reader, &document.root(), path);
        let contract = file::finish(reader, &document, path, read)?;
        let suite = Suite::load(&contract.suite)?;
        let mut reader = Reader::default();
        contract.check_tools(&mut reader, &suite);
        file::finish(reader, &document, path, contract)
    }

    /// A pinned tool that the suite does not offer is a mistake.
    fn check_tools(&self, reader: &mut Reader<Problem>, suite: &Suite) {
        let pinned = self.expected.iter().flat_map(Pinned::keys);
        for name in pinned {
            let names = || suite.tools.iter().map(|it| it.name.as_str());
            if !names().any(|it| it == name) {
                let mistake = Mistake::Nothing {
                    what: "tool",
                    name: name.clone(),
                    suggestion: closest(name, names()),
                };
                reader.error(&Pointer::of(["expected", name]), mistake);
            }
        }
    }
}

fn read(reader: &mut Reader<Problem>, root: &Placed<'_>, path: &Path) -> Contract {
    let section = reader.section(root, ROOT);
    if let Some(at) = section.said("version")
        && at.value != &Value::from(1)
    {
        reader.error(&at.pointer, Problem::Version);
    }
    let mut suite = PathBuf::new();
    if let Some(at) = reader.required(&section, "suite")
        && let Some(name) = reader.line(at, "a suite's file")
    {
        suite = find(name, path);
        if !suite.is_file() {
            let message = format!("there is no file {}", suite.display());
            reader.error(&at.pointer, Problem::OtherFile { message });
        }
    }
    let mut providers = Vec::new();
    if let Some(at) = reader.required(&section, "providers") {
        let named = reader.named(at, "a provider's name");
        if named.is_empty() && at.value.is_object() {
            let expected = "at least one provider";
            let found = "none".to_owned();
            reader.error(&at.pointer, Mistake::Type { expected, found });
        }
        for (name, at) in named {
            providers.extend(provider(reader, name, &at));
        }
    }
    let expected = section
        .said("expected")
        .map(|at| expected::read(reader, at));
    Contract {
        path: path.to_owned(),
        suite,
        providers,
        // Nothing pinned is nothing to compare with.
        expected: expected.filter(|it| !it.is_empty()),
    }
}

/// A file beside the contract, or one where the program was started.
fn find(name: &str, contract: &Path) -> PathBuf {
    let beside = contract.parent().unwrap_or(Path::new("")).join(name);
    let here = Path::new(name);
    match !beside.is_file() && here.is_file() {
        true => here.to_owned(),
        false => beside,
    }
}
