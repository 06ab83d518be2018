//! How definitions are compared.

use toolwarden_schema::{Callers, FormatMode, SearchBudget};

/// How definitions are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What callers may send.
    pub callers: Callers,
    /// Whether the keyword `format` rejects values.
    pub formats: FormatMode,
    /// The budget of one schema comparison.
    pub budget: SearchBudget,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            callers: Callers::Declared,
            formats: FormatMode::Annotate,
            budget: SearchBudget::default(),
        }
    }
}

impl Options {
    /// The options for a comparison of two tools that starts now; its time limit counts from this call.
    pub(crate) fn start(&self) -> Self {
        let time = self.budget.time.start();
        Self {
            budget: SearchBudget {
                time,
                ..self.budget
            },
            ..*self
        }
    }
}
