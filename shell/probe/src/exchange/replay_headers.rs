//! Headers between our replay server and our runs, so that a repeated run gives the same snapshot.
//! They are sent to and accepted from servers on this machine only.

use serde::{Deserialize, Serialize};

/// The trial that a request belongs to.
pub(crate) const TRIAL_HEADER: &str = "x-toolwarden-trial";
/// The measurements of the recorded response, as JSON.
pub(crate) const RECORDED_HEADER: &str = "x-toolwarden-recorded";

/// The measurements of a recorded response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedMeasurement {
    pub(crate) status: Option<u16>,
    pub(crate) headers_ms: Option<f64>,
    pub(crate) first_event_ms: Option<f64>,
    pub(crate) total_ms: f64,
    /// The code of a failure and its text.
    pub(crate) failure: Option<(String, String)>,
}
