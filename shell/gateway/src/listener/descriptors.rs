//! How many files and sockets the process may have open.

/// As many as the system lets us have, up to a number that programs we start can live with, too.
#[cfg(unix)]
const ENOUGH: u64 = 65_536;

/// Raises the limit of open files as far as the system lets us. Gives the limit in force, where there is one
/// that is known.
#[must_use]
pub fn raise_descriptor_limit() -> Option<u64> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let before = current?;
        let wanted = maximum.unwrap_or(ENOUGH).min(ENOUGH);
        if before >= wanted {
            return Some(before);
        }
        let raised = Rlimit {
            current: Some(wanted),
            maximum,
        };
        Some(match setrlimit(Resource::Nofile, raised) {
            Ok(()) => wanted,
            Err(_) => before,
        })
    }
    #[cfg(not(unix))]
    None
}
