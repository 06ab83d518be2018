//! The drift of one tool.

use toolwarden_model::Severity;

use crate::change::{Change, ChangeClass, ToolwatchChangeType};
use crate::facet::Facet;
use crate::schema::SchemaDrift;
use crate::shape::ShapeDrift;

/// What changed between two observations of one tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The name of the tool.
    pub tool: String,
    /// Every change, the most severe first; empty if nothing drifted.
    pub changes: Vec<Change>,
    /// The combined effect of all changes to the arguments.
    pub input: Option<SchemaDrift>,
    /// The combined effect of all changes to the result.
    pub output: Option<SchemaDrift>,
    /// How the shape of the results changed, if results were observed.
    pub results: Option<ShapeDrift>,
}

impl Drift {
    /// The most severe class among the changes.
    #[must_use]
    pub fn class(&self) -> Option<ChangeClass> {
        self.changes.iter().map(|change| change.class).max()
    }

    /// Whether any change, or text that it introduces, is of this class.
    #[must_use]
    pub fn has_class(&self, class: ChangeClass) -> bool {
        self.changes.iter().any(|change| change.has_class(class))
    }

    /// The kind of drift, in the terms of the toolwatch document.
    #[must_use]
    pub fn change_type(&self) -> Option<ToolwatchChangeType> {
        let of_results = |change: &Change| change.evidence.facet == Facet::Result;
        let results = self.changes.iter().any(of_results);
        let definition = self.changes.iter().any(|change| !of_results(change));
        match (definition, results) {
            (true, true) => Some(ToolwatchChangeType::Behavior),
            (true, false) => Some(ToolwatchChangeType::Schema),
            (false, true) => Some(ToolwatchChangeType::Response),
            (false, false) => None,
        }
    }

    /// The severity of the most severe change.
    #[must_use]
    pub fn severity(&self) -> Option<Severity> {
        self.class().map(ChangeClass::severity)
    }
}
