//! The mask over secrets.

/// The text that replaces a secret.
pub(super) const MASK: &str = "***";
