//! The files that users write for a probe, and the mistakes they can contain.

use std::path::{Path, PathBuf};

use thiserror::Error;
use toolwarden_files::{FileError, read_text};
use toolwarden_model::document::{Diagnostic, DiagnosticKind, Document, DocumentReader};

use crate::base_url::InvalidBaseUrl;

/// The largest file that is read.
const MAX_BYTES: u64 = 64 << 20;

/// Why a suite or a contract cannot be used.
#[derive(Debug, Error)]
pub enum ProbeFileError {
    /// The file cannot be read or parsed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file contains mistakes.
    #[error("{}", mistake_list(path, mistakes))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Every mistake, in text order.
        mistakes: Vec<Diagnostic<ProbeFileProblem>>,
    },
}

/// A mistake in a suite or a contract.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProbeFileProblem {
    /// A mistake that is possible in any document.
    #[error(transparent)]
    Mistake(#[from] DiagnosticKind),
    /// The file has an unsupported version.
    #[error("only version 1 is supported")]
    Version,
    /// Two entries have the same name.
    #[error("there are two {what} `{name}`")]
    Twice {
        /// The kind of entry.
        what: &'static str,
        /// Their name.
        name: String,
    },
    /// Another file that this file names cannot be used.
    #[error("{message}")]
    OtherFile {
        /// What is wrong with it.
        message: String,
    },
    /// A definition cannot be offered to a model.
    #[error("{message}")]
    Definition {
        /// What is wrong with it.
        message: String,
    },
    /// The schema of a tool cannot be used.
    #[error("the schema of `{tool}` is invalid: {message}")]
    Schema {
        /// The tool.
        tool: String,
        /// What is wrong with it.
        message: String,
    },
    /// The expected arguments violate the tool's schema.
    #[error("the expected call of `{tool}` is invalid: {message}")]
    Arguments {
        /// The tool.
        tool: String,
        /// What the schema rejects.
        message: String,
    },
    /// A call is both expected and forbidden.
    #[error("`{tool}` is expected and forbidden")]
    ExpectedAndForbidden {
        /// The tool.
        tool: String,
    },
    /// Calls are expected in a case that expects none.
    #[error("`expect: no_call` and `calls` exclude each other")]
    CallsOfNoCall,
    /// A turn follows an answer without calls.
    #[error(
        "`expect: no_call` and a following turn exclude each other: there is no call to answer"
    )]
    TurnsOfNoCall,
    /// The probe itself sets this member of the request.
    #[error("`{key}` is set by the probe and cannot be an extra")]
    Reserved {
        /// Its key.
        key: String,
    },
    /// A key is written into a file. The error does not repeat it.
    #[error(
        "a key does not belong in a file; \
         put it in an environment variable and name that in `api_key_env`"
    )]
    Secret,
    /// A header looks like a key. The error does not repeat it.
    #[error(
        "the header `{name}` looks like a key; keys do not belong in a file, \
         use `api_key_env`, or `${{NAME}}` for the value of an environment variable"
    )]
    SecretHeader {
        /// The header.
        name: String,
    },
    /// A header cannot be sent.
    #[error("`{name}` is not a header that can be sent; {why}")]
    Header {
        /// Its name.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// A text is not a valid variable name. It may be a key, so the error does not repeat it.
    #[error("expected the name of an environment variable such as DEEPSEEK_API_KEY")]
    Variable,
    /// An address is invalid.
    #[error(transparent)]
    BaseUrl(#[from] InvalidBaseUrl),
    /// A provider is unknown, and its address and model are not given.
    #[error("provider `{name}` is not known{suggestion}; give its `base_url` and `model_id`")]
    Provider {
        /// Its name.
        name: String,
        /// A similar name that the user may have meant.
        suggestion: String,
    },
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    read_text(path, MAX_BYTES)
}

/// Returns the value, unless the reader found mistakes.
pub(crate) fn finish<T>(
    reader: DocumentReader<ProbeFileProblem>,
    document: &Document,
    path: &Path,
    read: T,
) -> Result<T, ProbeFileError> {
    let mistakes = reader.finish(document);
    if mistakes.is_empty() {
        return Ok(read);
    }
    Err(ProbeFileError::Invalid {
        path: path.to_owned(),
        mistakes,
    })
}

fn mistake_list(path: &Path, mistakes: &[Diagnostic<ProbeFileProblem>]) -> String {
    let lines = mistakes.iter().map(|it| {
        let (line, column) = (it.position.line, it.position.column);
        format!("{}:{line}:{column}: {it}", path.display())
    });
    lines.collect::<Vec<_>>().join("\n")
}
