use std::path::PathBuf;

use thiserror::Error;
use toolwarden_guard::audit::InvalidChainLink;

/// Why a command about the audit log could not do its work.
#[derive(Debug, Error)]
pub(crate) enum AuditCommandError {
    #[error("there is no audit log: {} does not exist", path.display())]
    NoStore { path: PathBuf },
    #[error("`{text}` is neither a head nor a file")]
    NotAHead { text: String },
    #[error("{} does not end with a head", path.display())]
    NoHeadIn {
        path: PathBuf,
        source: InvalidChainLink,
    },
}

impl AuditCommandError {
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::NotAHead { .. } | Self::NoHeadIn { .. } => 2,
            Self::NoStore { .. } => 3,
        }
    }

    pub(crate) const fn help(&self) -> &'static str {
        match self {
            Self::NoStore { .. } => {
                "name the store with --store or TOOLWARDEN_STORE; this command does not create one"
            }
            Self::NotAHead { .. } | Self::NoHeadIn { .. } => {
                "`toolwarden audit verify` prints the head, as SEQ:HASH"
            }
        }
    }
}
