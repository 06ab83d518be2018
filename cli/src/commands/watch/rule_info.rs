//! What each class of drift is about, for readers of a report.

use toolwarden_drift::ChangeClass;

use crate::report::{NOT_MEASURED, PINNED, RuleInfo};

/// The class as a rule: one entry for each.
pub(super) const fn rule_info(class: ChangeClass) -> RuleInfo {
    let (finds, help) = match class {
        ChangeClass::Breaking => (
            "Something that worked is rejected now, or a result may come that could not come before.",
            "Change what callers send, or stay on the old version until they do. The message has a call \
             that worked and is rejected now.",
        ),
        ChangeClass::Trust => (
            "The tool asks for less caution, or its text turned against its reader.",
            "Have a person read the definition before a model does, then approve it with `toolwarden watch \
             approve` or by writing the lock file again.",
        ),
        ChangeClass::Unknown => (
            "The meaning of the change could not be established.",
            "Replay recorded calls with `--observed`, or compare the named places by hand.",
        ),
        ChangeClass::Structural => (
            "A tool or a promise appeared.",
            "Decide which agents may have it.",
        ),
        ChangeClass::Widened => (
            "More is accepted, or more is returned, than before.",
            "Decide whether agents may use what is new.",
        ),
        ChangeClass::Behavioural => (
            "The same calls are accepted, but a model may act differently.",
            "Read what changed; run your tests with a model if wording matters.",
        ),
        ChangeClass::Added => (
            "A tool appeared that the list did not have.",
            "Read its definition and decide which agents may have it, then approve it.",
        ),
        ChangeClass::Ignored => (
            "An argument that callers may send is accepted and no longer read.",
            "Change what callers send: the message has a call that lost its meaning.",
        ),
        ChangeClass::Text => (
            "Text changed that a model reads.",
            "Read the marked words, then approve them with `toolwarden watch approve --text`.",
        ),
        ChangeClass::Info => (
            "The definition says something that changes nothing.",
            "Nothing has to be done.",
        ),
        ChangeClass::Equivalent => (
            "The same contract in other words.",
            "Nothing has to be done.",
        ),
    };
    RuleInfo {
        id: class.as_str(),
        finds,
        help,
    }
}

/// Results that were too few to say anything.
pub(super) const UNMEASURED: RuleInfo = RuleInfo {
    id: NOT_MEASURED,
    finds: "Results could not be compared: there are too few of them, or none are pinned.",
    help: "Give as many results as the message names, compare deterministic ones with `--fixtures`, or \
           pin results with `toolwarden watch baseline`.",
};

/// A server of the lock file that was not checked.
pub(super) const UNCHECKED: RuleInfo = RuleInfo {
    id: "unchecked",
    finds: "A server of the lock file was not checked.",
    help: "Check it with its command, URL or file, or take it out of the lock file.",
};

/// Tools that this check pinned, so that there was nothing to compare them with.
pub(super) const FIRST_PINNED: RuleInfo = RuleInfo {
    id: PINNED,
    finds: "Tools were pinned for the first time, and compared with nothing.",
    help: "Review the tools: later checks compare with them. In CI, keep the store between runs or use a \
           lock file, or each run is a first one.",
};

/// A server that did not answer.
pub(super) const UNANSWERED: RuleInfo = RuleInfo {
    id: "unanswered",
    finds: "A server could not be asked, so its tools were not checked.",
    help: "Start the server, or correct its command or URL.",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_says_what_it_finds_and_what_to_do() {
        let mut texts = std::collections::BTreeSet::new();
        for class in ChangeClass::ALL {
            let about = rule_info(class);
            assert_eq!(about.id, class.as_str());
            assert!(about.finds.ends_with('.') && about.help.ends_with('.'));
            assert!(texts.insert(about.finds));
        }
    }
}
