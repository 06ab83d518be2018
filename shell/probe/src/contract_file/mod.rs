//! Contract files: the providers a suite runs against, and the expected result.

mod expected;

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolwarden_files::parse_document;
use toolwarden_model::did_you_mean;
use toolwarden_model::document::{DiagnosticKind, DocumentReader, KeySpec, LocatedValue};
use toolwarden_model::json::Pointer;
use toolwarden_trials::{FaultLimits, PinnedContract};

use crate::probe_file::{self, ProbeFileError, ProbeFileProblem};
use crate::provider::Provider;
use crate::provider::read::read_provider;
use crate::suite::ProbeSuite;

const ROOT: &[KeySpec] = &[
    KeySpec::new("version"),
    KeySpec::new("suite"),
    KeySpec::new("providers"),
    KeySpec::new("expected"),
    KeySpec::new("max_rate"),
];

/// A contract file.
#[derive(Clone, Debug, PartialEq)]
pub struct ContractFile {
    /// The file.
    pub path: PathBuf,
    /// The suite file.
    pub suite: PathBuf,
    /// The providers to run the suite against, in file order.
    pub providers: Vec<Provider>,
    /// The expected values, if any are given.
    pub expected: Option<PinnedContract>,
    /// The faults that may occur, and how often.
    pub fault_limits: FaultLimits,
}

impl ContractFile {
    /// Reads a contract file and checks it against its suite.
    ///
    /// # Errors
    /// The file or its suite is invalid; the error lists every mistake.
    pub fn load(path: &Path) -> Result<Self, ProbeFileError> {
        Self::parse(&probe_file::read(path)?, path)
    }

    /// Like [`Self::load`], from the text of the file at a path.
    ///
    /// # Errors
    /// The text or the suite it names is invalid; the error lists every mistake.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ProbeFileError> {
        let document = parse_document(text, path)?;
        let mut reader = DocumentReader::default();
        let read = read(&mut reader, &document.root(), path);
        let contract = probe_file::finish(reader, &document, path, read)?;
        let suite = ProbeSuite::load(&contract.suite)?;
        let mut reader = DocumentReader::default();
        contract.check_tools(&mut reader, &suite);
        probe_file::finish(reader, &document, path, contract)
    }

    /// Reports a pinned tool that the suite does not offer.
    fn check_tools(&self, reader: &mut DocumentReader<ProbeFileProblem>, suite: &ProbeSuite) {
        let pinned = self.expected.iter().flat_map(PinnedContract::keys);
        for name in pinned {
            let names = || suite.tools.iter().map(|it| it.name.as_str());
            if !names().any(|it| it == name) {
                let mistake = DiagnosticKind::UnknownReference {
                    what: "tool",
                    name: name.clone(),
                    suggestion: did_you_mean(name, names()),
                };
                reader.report(&Pointer::of(["expected", name]), mistake);
            }
        }
    }
}

fn read(
    reader: &mut DocumentReader<ProbeFileProblem>,
    root: &LocatedValue<'_>,
    path: &Path,
) -> ContractFile {
    let section = reader.section(root, ROOT);
    if let Some(at) = section.said("version")
        && at.value != &Value::from(1)
    {
        reader.report(&at.pointer, ProbeFileProblem::Version);
    }
    let mut suite = PathBuf::new();
    if let Some(at) = reader.required(&section, "suite")
        && let Some(name) = reader.non_blank_text(at, "a suite's file")
    {
        suite = resolve_path(name, path);
        if !suite.is_file() {
            let message = format!("there is no file {}", suite.display());
            reader.report(&at.pointer, ProbeFileProblem::OtherFile { message });
        }
    }
    let mut providers = Vec::new();
    if let Some(at) = reader.required(&section, "providers") {
        let named = reader.named(at, "a provider's name");
        if named.is_empty() && at.value.is_object() {
            let expected = "at least one provider";
            let found = "none".to_owned();
            reader.report(&at.pointer, DiagnosticKind::WrongType { expected, found });
        }
        for (name, at) in named {
            providers.extend(read_provider(reader, name, &at));
        }
    }
    let expected = section
        .said("expected")
        .map(|at| expected::read(reader, at));
    let limits = section.said("max_rate");
    let fault_limits = limits.map(|at| expected::read_fault_limits(reader, at));
    ContractFile {
        path: path.to_owned(),
        suite,
        providers,
        // An empty expectation means that there is nothing to compare.
        expected: expected.filter(|it| !it.is_empty()),
        fault_limits: fault_limits.unwrap_or_default(),
    }
}

/// Looks for the file next to the contract, then in the working directory.
fn resolve_path(name: &str, contract: &Path) -> PathBuf {
    let beside = contract.parent().unwrap_or(Path::new("")).join(name);
    let here = Path::new(name);
    match !beside.is_file() && here.is_file() {
        true => here.to_owned(),
        false => beside,
    }
}
