use toolwarden_model::Change;

use super::{FindingDetail, FindingLevel, FindingOrigin, ReportFinding, RuleInfo};

/// What a report says of a change beyond the change itself.
#[derive(Clone, Debug)]
pub(crate) struct FindingContext {
    /// The check that found it.
    pub(crate) check: String,
    /// The tool, or what was compared if the change is about no tool.
    pub(crate) subject: String,
    /// The server of the tool, where a report is about several.
    pub(crate) group: Option<String>,
    pub(crate) level: FindingLevel,
    pub(crate) message: String,
    pub(crate) place: FindingPlace,
    pub(crate) rule_info: RuleInfo,
    /// What stays the same when the change is found again.
    pub(crate) fingerprint: String,
}

/// The place a reader opens.
#[derive(Clone, Debug, Default)]
pub(crate) struct FindingPlace {
    pub(crate) file: String,
    /// The line and the column; the first ones if none are known.
    pub(crate) position: Option<(usize, usize)>,
    pub(crate) pointer: String,
    pub(crate) origin: FindingOrigin,
}

impl ReportFinding {
    /// A change as a finding, whatever was compared: definitions, results or trials.
    pub(crate) fn from_change<E>(change: &Change<E>, context: FindingContext) -> Self {
        let FindingContext {
            check,
            subject,
            group,
            level,
            message,
            place,
            rule_info,
            fingerprint,
        } = context;
        let (line, column) = place.position.unwrap_or((1, 1));
        Self {
            check,
            rule: change.rule,
            level,
            tool: subject,
            message,
            file: place.file,
            line,
            column,
            pointer: place.pointer,
            fixable: false,
            detail: FindingDetail {
                origin: place.origin,
                rule_info: Some(rule_info),
                fingerprint: Some(fingerprint),
                group,
            },
        }
    }
}
