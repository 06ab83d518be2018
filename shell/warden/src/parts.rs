use toolwarden_drift::ChangeType;
use toolwarden_store::{AlertStatus, ServerId, Store, StoreError};

/// The change type of alerts about the text of a tool that is served: nothing drifted.
pub(crate) const FINDING: &str = "finding";

/// The parts of a tool that are held to something, and looked at or approved by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) definition: bool,
    pub(crate) results: bool,
}

impl Parts {
    pub(crate) const ALL: Self = Self {
        definition: true,
        results: true,
    };
    pub(crate) const DEFINITION: Self = Self {
        definition: true,
        results: false,
    };

    /// The parts an alert is about.
    pub(crate) fn of(change_type: &str) -> Self {
        let is = |known: ChangeType| change_type == known.as_str();
        Self {
            definition: !is(ChangeType::Response),
            results: !is(ChangeType::Schema),
        }
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self {
            definition: self.definition || other.definition,
            results: self.results || other.results,
        }
    }

    /// Settles the open alerts of a tool that are about nothing but these parts.
    pub(crate) fn settle(
        self,
        store: &Store,
        server: ServerId,
        tool: &str,
        status: AlertStatus,
        except: &[String],
    ) -> Result<(), StoreError> {
        for known in ChangeType::ALL {
            let about = Self::of(known.as_str());
            let covered =
                (self.definition || !about.definition) && (self.results || !about.results);
            if covered {
                store.settle(server, tool, known.as_str(), status, except)?;
            }
        }
        if self.definition && status == AlertStatus::Approved {
            store.settle(server, tool, FINDING, status, except)?;
        }
        Ok(())
    }
}
