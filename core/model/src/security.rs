use std::fmt;

use crate::hints::vocabulary;

/// What using a tool demands and touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Security {
    /// Permissions a caller needs.
    pub required_permissions: Vec<String>,
    /// How sensitive the data is.
    pub data_classification: DataClassification,
    /// What happens to personal data.
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
        /// For everybody.
        Public = "public",
        /// For the organization.
        Internal = "internal",
        /// For those who need it.
        Confidential = "confidential",
        /// For named people.
        Restricted = "restricted",
    }
}

vocabulary! {
    /// What a tool does with personal data.
    PiiHandling {
        /// It sees none.
        None = "none",
        /// It sees some and keeps none.
        Processes = "processes",
        /// It keeps some.
        Stores = "stores",
        /// It removes what identifies people.
        Anonymizes = "anonymizes",
    }
}
