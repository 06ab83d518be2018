//! What each class of drift is about, for readers of a report.

use toolwarden_drift::Class;

use crate::report::{About, NOT_MEASURED};

/// The class as a rule: one entry for each.
pub(super) const fn about(class: Class) -> About {
    let (finds, help) = match class {
        Class::Breaking => (
            "Something that worked is rejected now, or a result may come that could not come before.",
            "Change what callers send, or stay on the old version until they do. The message has a call \
             that worked and is rejected now.",
        ),
        Class::Trust => (
            "The tool asks for less caution, or its text turned against its reader.",
            "Have a person read the definition before a model does, then approve it with `toolwarden watch \
             approve` or by writing the lock file again.",
        ),
        Class::Unknown => (
            "It could not be established what the change means.",
            "Replay recorded calls with `--observed`, or compare the named places by hand.",
        ),
        Class::Structural => (
            "A tool or a promise appeared.",
            "Decide which agents may have it.",
        ),
        Class::Widened => (
            "More is accepted, or more is returned, than before.",
            "Decide whether agents may use what is new.",
        ),
        Class::Behavioural => (
            "The same calls are accepted, but a model may act differently.",
            "Read what changed; run your tests with a model if wording matters.",
        ),
        Class::Added => (
            "A tool appeared that the list did not have.",
            "Read its definition and decide which agents may have it, then approve it.",
        ),
        Class::Ignored => (
            "An argument that callers may send is accepted and no longer read.",
            "Change what callers send: the message has a call that lost its meaning.",
        ),
        Class::Text => (
            "Text changed that a model reads.",
            "Read the marked words, then approve them with `toolwarden watch approve --text`.",
        ),
        Class::Info => (
            "Something was published that asks for no less caution than before.",
            "Nothing has to be done.",
        ),
        Class::Equivalent => (
            "The same contract in other words.",
            "Nothing has to be done.",
        ),
    };
    About {
        id: class.as_str(),
        finds,
        help,
    }
}

/// Results that were too few to say anything.
pub(super) const UNMEASURED: About = About {
    id: NOT_MEASURED,
    finds: "Too few results were seen to tell drift from chance.",
    help: "Give as many results as the message names, or compare deterministic ones with `--fixtures`.",
};

/// A server of the lock file that was not looked at.
pub(super) const UNCHECKED: About = About {
    id: "unchecked",
    finds: "A server of the lock file was not checked.",
    help: "Check it with its command, URL or file, or take it out of the lock file.",
};

/// A server that did not answer.
pub(super) const UNANSWERED: About = About {
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
        for class in Class::ALL {
            let about = about(class);
            assert_eq!(about.id, class.as_str());
            assert!(about.finds.ends_with('.') && about.help.ends_with('.'));
            assert!(texts.insert(about.finds));
        }
    }
}
