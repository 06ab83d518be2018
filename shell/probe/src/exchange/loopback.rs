//! What our replay server and our requests tell each other, so that a repeated run gives the same
//! snapshot. Nobody but a server on this machine is told or believed.

use serde::{Deserialize, Serialize};

/// Which trial a request belongs to.
pub(crate) const TRIAL_HEADER: &str = "x-toolwarden-trial";
/// What was measured when the response was recorded, as JSON.
pub(crate) const RECORDED_HEADER: &str = "x-toolwarden-recorded";

/// What was measured when a response was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recorded {
    pub(crate) status: Option<u16>,
    pub(crate) headers_ms: Option<f64>,
    pub(crate) first_event_ms: Option<f64>,
    pub(crate) total_ms: f64,
    /// The word of a failure and what it says.
    pub(crate) failure: Option<(String, String)>,
}
