//! Builds changes.

use crate::change::{Change, ChangeClass, ChangeId, ChangeKind, DefinitionEvidence};
use crate::difference::Difference;
use crate::facet::Facet;

/// Builds the changes of one tool.
pub(crate) struct ChangeBuilder<'t> {
    pub(crate) tool: &'t str,
}

impl ChangeBuilder<'_> {
    pub(crate) fn change(
        &self,
        rule: &'static str,
        facet: Facet,
        class: ChangeClass,
        difference: &Difference<'_>,
        message: String,
    ) -> Change {
        let kind = match (difference.before, difference.after) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            _ => ChangeKind::Changed,
        };
        Change {
            id: ChangeId::of(
                self.tool,
                rule,
                &difference.pointer,
                difference.before,
                difference.after,
            ),
            tool: Some(self.tool.to_owned()),
            rule,
            pointer: difference.pointer.clone(),
            kind,
            class,
            before: difference.before.cloned(),
            after: difference.after.cloned(),
            message,
            evidence: DefinitionEvidence::of(facet),
        }
    }
}
