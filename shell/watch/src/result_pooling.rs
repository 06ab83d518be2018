//! Pools the results of the hours before a check: a few results alone are not significant.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use toolwarden_drift::shape::{InvalidShape, Shape};
use toolwarden_settings::WatchSettings;
use toolwarden_store::{ServerId, Store};

use crate::observed_results::ObservedResults;
use crate::pins::{Pins, PinsError};

/// How results are collected before they are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultPooling {
    /// How many results form the shape that later results are compared with.
    pub learn_results: u64,
    /// How far back results are compared with the pinned shape.
    pub window: Duration,
}

impl ResultPooling {
    /// What the settings of a server say.
    #[must_use]
    pub const fn of_settings(settings: &WatchSettings) -> Self {
        Self {
            learn_results: settings.learn_results,
            window: settings.window,
        }
    }
}

impl Default for ResultPooling {
    fn default() -> Self {
        Self::of_settings(&WatchSettings::default())
    }
}

/// Adds the results of the hours before this check. While there are too few to compare, it only collects
/// them.
///
/// # Errors
/// The store cannot be read or written.
pub fn add_recent_results(
    store: &Store,
    pins: &Pins<'_>,
    results: &mut BTreeMap<String, ObservedResults>,
    gathering: ResultPooling,
    now: Timestamp,
) -> Result<(), PinsError> {
    let Some(server) = &pins.server else {
        results.clear();
        return Ok(());
    };
    let window = SignedDuration::try_from(gathering.window).unwrap_or(SignedDuration::MAX);
    let oldest = now.checked_sub(window).unwrap_or(Timestamp::MIN);
    for (tool, results) in &mut *results {
        let mut hour = results.shape().clone();
        for shape in hourly_shapes(store, server.id, tool, now)? {
            hour.merge(&shape);
        }
        let text = hour.to_json().to_string();
        for shape in hourly_shapes(store, server.id, tool, oldest)? {
            results.merge(&shape);
        }
        store.save_observed_shape(server.id, tool, now, &text, oldest)?;
    }
    results.retain(|tool, results| {
        let pinned = pins.tools.get(tool).and_then(|pin| pin.stored_shape());
        pinned.is_some() || results.shape().results() >= gathering.learn_results
    });
    Ok(())
}

fn hourly_shapes(
    store: &Store,
    server: ServerId,
    tool: &str,
    since: Timestamp,
) -> Result<Vec<Shape>, PinsError> {
    let texts = store.observed_shapes(server, tool, since)?;
    let shapes = texts.iter().map(|text| {
        let json = serde_json::from_str(text).map_err(|_| InvalidShape::Version);
        let shape = json.and_then(|json| Shape::from_json(&json));
        shape.map_err(|source| PinsError::Shape {
            tool: tool.to_owned(),
            source,
        })
    });
    shapes.collect()
}
