//! The files people write for a probe, and what may be wrong with them.

use std::path::{Path, PathBuf};

use thiserror::Error;
use toolwarden_files::{FileError, read_text};
use toolwarden_model::document::{Document, Mistake, MistakeAt, Reader};

use crate::provider::InvalidBaseUrl;

/// The largest file that is read.
const MAX_BYTES: u64 = 64 << 20;

/// Why a suite or a contract cannot be used.
#[derive(Debug, Error)]
pub enum ProbeFileError {
    /// It says nothing.
    #[error(transparent)]
    File(#[from] FileError),
    /// There are mistakes in it.
    #[error("{}", listed(path, mistakes))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Every mistake, in the order of the text.
        mistakes: Vec<MistakeAt<Problem>>,
    },
}

/// What is wrong in a suite or a contract.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// What may be wrong in any document.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// The file is of another version.
    #[error("only version 1 is known")]
    Version,
    /// Two things have the same name.
    #[error("there are two {what} `{name}`")]
    Twice {
        /// What kind of things.
        what: &'static str,
        /// Their name.
        name: String,
    },
    /// Another file that is named cannot be used.
    #[error("{message}")]
    OtherFile {
        /// What is wrong with it.
        message: String,
    },
    /// A definition is none that a model could be offered.
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
    /// The arguments that are expected would be wrong.
    #[error("no right call of `{tool}`: {message}")]
    Arguments {
        /// The tool.
        tool: String,
        /// What its schema does not accept.
        message: String,
    },
    /// A call is expected that must not be made.
    #[error("`{tool}` is expected and forbidden")]
    ExpectedAndForbidden {
        /// The tool.
        tool: String,
    },
    /// Calls are expected of a case that is to have none.
    #[error("`expect: no_call` and `calls` exclude each other")]
    CallsOfNoCall,
    /// A member of the request is made by the probe itself.
    #[error("`{key}` is set by the probe and cannot be an extra")]
    Reserved {
        /// Its key.
        key: String,
    },
    /// A key is written into a file. What was written is not repeated.
    #[error(
        "a key does not belong in a file; \
         put it in an environment variable and name that in `api_key_env`"
    )]
    Secret,
    /// A header looks like a key. What was written is not repeated.
    #[error(
        "the header `{name}` looks like a key; keys do not belong in a file, \
         use `api_key_env`, or `${{NAME}}` for the value of an environment variable"
    )]
    SecretHeader {
        /// The header.
        name: String,
    },
    /// A header cannot be sent.
    #[error("`{name}` is no header that can be sent; {why}")]
    Header {
        /// Its name.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// A variable has a name that none can have. It may be a key, so it is not repeated.
    #[error("expected the name of an environment variable such as DEEPSEEK_API_KEY")]
    Variable,
    /// An address is none.
    #[error(transparent)]
    BaseUrl(#[from] InvalidBaseUrl),
    /// A provider is not known, and its address and model are not given.
    #[error("provider `{name}` is not known{suggestion}; give its `base_url` and `model_id`")]
    Provider {
        /// Its name.
        name: String,
        /// What may have been meant.
        suggestion: String,
    },
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    read_text(path, MAX_BYTES)
}

/// What was read, unless there are mistakes.
pub(crate) fn finish<T>(
    reader: Reader<Problem>,
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

fn listed(path: &Path, mistakes: &[MistakeAt<Problem>]) -> String {
    let lines = mistakes.iter().map(|it| {
        let (line, column) = (it.position.line, it.position.column);
        format!("{}:{line}:{column}: {it}", path.display())
    });
    lines.collect::<Vec<_>>().join("\n")
}
