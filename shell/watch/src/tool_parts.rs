use toolwarden_drift::ToolwatchChangeType;
use toolwarden_store::{AlertStatus, ServerId, Store, StoreError};

/// The change type of alerts about the text of a tool that is served: it has not drifted.
pub(crate) const FINDING_CHANGE_TYPE: &str = "finding";

/// The parts of a tool that are pinned, and that are compared or approved separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToolParts {
    pub(crate) definition: bool,
    pub(crate) results: bool,
}

impl ToolParts {
    pub(crate) const ALL: Self = Self {
        definition: true,
        results: true,
    };
    pub(crate) const DEFINITION: Self = Self {
        definition: true,
        results: false,
    };

    /// The parts that an alert is about.
    pub(crate) fn from_change_type(change_type: &str) -> Self {
        let is = |known: ToolwatchChangeType| change_type == known.as_str();
        Self {
            definition: !is(ToolwatchChangeType::Response),
            results: !is(ToolwatchChangeType::Schema),
        }
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self {
            definition: self.definition || other.definition,
            results: self.results || other.results,
        }
    }

    /// Settles the open alerts of a tool that concern only these parts.
    pub(crate) fn close_alerts(
        self,
        store: &Store,
        server: ServerId,
        tool: &str,
        status: AlertStatus,
        except: &[String],
    ) -> Result<(), StoreError> {
        for known in ToolwatchChangeType::ALL {
            let about = Self::from_change_type(known.as_str());
            let covered =
                (self.definition || !about.definition) && (self.results || !about.results);
            if covered {
                store.settle_alerts(server, tool, known.as_str(), status, except)?;
            }
        }
        if self.definition && status == AlertStatus::Approved {
            store.settle_alerts(server, tool, FINDING_CHANGE_TYPE, status, except)?;
        }
        Ok(())
    }
}
