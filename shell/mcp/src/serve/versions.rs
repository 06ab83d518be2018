//! The opening of the handshake era on the server side.

use crate::protocol::{NEWEST_HANDSHAKE_VERSION, STATELESS_VERSION};

/// Versions that a client may request with `initialize`, oldest first.
pub const INITIALIZE_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// All supported versions, newest first, as `server/discover` lists them.
pub const SERVED_VERSIONS: [&str; 5] = [
    STATELESS_VERSION,
    "2025-11-25",
    "2025-06-18",
    "2025-03-26",
    "2024-11-05",
];

/// The version to answer `initialize` with: the requested one if it is supported, else the newest.
#[must_use]
pub fn negotiate_version(asked: &str) -> &'static str {
    INITIALIZE_VERSIONS
        .into_iter()
        .find(|version| *version == asked)
        .unwrap_or(NEWEST_HANDSHAKE_VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_echoed_or_the_newest() {
        for (asked, answered) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-06-18", "2025-06-18"),
            ("2026-07-28", "2025-11-25"),
            ("1.0", "2025-11-25"),
        ] {
            assert_eq!(negotiate_version(asked), answered);
        }
    }

    #[test]
    fn the_lists_agree() {
        let mut all = SERVED_VERSIONS;
        all.reverse();
        let (newest, rest) = all.split_last().unwrap();
        assert_eq!(
            (*newest, rest),
            (STATELESS_VERSION, &INITIALIZE_VERSIONS[..])
        );
    }
}
