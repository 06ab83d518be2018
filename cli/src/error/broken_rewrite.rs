use serde_json::Value;
use thiserror::Error;
use toolwarden_canon::EditMismatch;

/// A rewrite that changes more than it says. It is a mistake in toolwarden.
#[derive(Debug, Error)]
pub(crate) enum BrokenRewrite {
    #[error("{0}")]
    Unaccounted(#[from] EditMismatch),
    #[error("it would reject {value}, which was valid before, and no reported loss says so")]
    Narrowed { value: Value },
    #[error("it would accept {value}, which was not valid before, and no reported loss says so")]
    Widened { value: Value },
}
