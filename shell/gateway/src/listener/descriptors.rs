//! The limit of open files and sockets of the process.

/// The highest limit to request; programs that the gateway starts inherit it and must cope with it.
#[cfg(unix)]
const MAX_DESCRIPTORS: u64 = 65_536;

/// Raises the limit of open files as far as the system allows. Returns the limit in force, if it is known.
#[must_use]
pub fn raise_descriptor_limit() -> Option<u64> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let before = current?;
        let wanted = maximum.unwrap_or(MAX_DESCRIPTORS).min(MAX_DESCRIPTORS);
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
