//! Which feature a call used, as its record says.

use toolwarden_guard::{Feature, FeatureKind};

/// The feature used, for a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedFeature {
    /// Its kind.
    pub kind: FeatureKind,
    /// The server that offers it; `None` if no server does.
    pub server: Option<Box<str>>,
    /// The method that uses it.
    pub method: Box<str>,
}

impl UsedFeature {
    pub(super) fn of(feature: &Feature<'_>) -> Box<Self> {
        Box::new(Self {
            kind: feature.kind,
            server: feature.server.map(Box::from),
            method: feature.method.into(),
        })
    }
}
