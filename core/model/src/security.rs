use std::fmt;

use crate::hints::vocabulary;

/// What a tool requires and which data it touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Security {
    /// Permissions a caller needs.
    pub required_permissions: Vec<String>,
    /// How sensitive the data is.
    pub data_classification: DataClassification,
    /// How the tool handles personal data.
    pub pii_handling: PiiHandling,
}

impl Default for Security {
    fn default() -> Self {
        Self {
            required_permissions: Vec::new(),
            data_classification: DataClassification::Public,
            pii_handling: PiiHandling::None,
        }
    }
}

vocabulary! {
    /// How sensitive the data of a tool is.
    DataClassification {
        /// For everyone.
        Public = "public",
        /// For the organization.
        Internal = "internal",
        /// For people who need it.
        Confidential = "confidential",
        /// For named people.
        Restricted = "restricted",
    }
}

vocabulary! {
    /// How a tool handles personal data.
    PiiHandling {
        /// It processes none.
        None = "none",
        /// It processes personal data and stores none.
        Processes = "processes",
        /// It stores personal data.
        Stores = "stores",
        /// It removes identifying data.
        Anonymizes = "anonymizes",
    }
}
