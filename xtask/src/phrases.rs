//! Phrases that a reader has to decode, with the plain words to write instead.

use crate::workspace::{SourceFile, Workspace};

/// Files that list phrases cannot be free of them: this one, and the detectors of prompt injection.
const LISTS: &[&str] = &[
    "xtask/src/phrases.rs",
    "core/drift/src/text/added_text/mod.rs",
    "core/drift/src/text/injection/table.rs",
];

const BANNED: &[(&str, &str)] = &[
    ("put down", "record, write"),
    ("puts down", "records, writes"),
    ("held to", "checked against, compared with"),
    ("is told", "name who reports it"),
    ("are told", "name who reports it"),
    ("was told", "name who reported it"),
    ("whoever", "the caller, the operator, the client"),
    ("somebody", "a caller, an operator"),
    ("nobody", "no caller, no one: name the subject"),
    ("anybody", "any caller, anyone: name the subject"),
    ("everybody", "every caller, all agents: name the subject"),
    ("what hides", "hidden text"),
    ("on its way", "in flight, being sent"),
    ("on their way", "in flight, being sent"),
    ("as pinned", "matching its pin"),
    ("is there already", "already exists"),
    ("with chance", "with jitter, at random"),
    ("left away", "left out, omitted"),
    ("takes over its own", "say what replaces what"),
    ("wait for approval", "are pending approval"),
    ("waits for approval", "is pending approval"),
    ("under way", "in flight, in progress"),
    ("taken over", "imported, reloaded, replaced"),
    ("told apart", "distinguished"),
    ("looked at", "checked, read, polled"),
    ("anew", "again, from the start"),
];

/// What may follow "is no" without "is not a" being meant.
const AFTER_IS_NO: &[&str] = &["longer", "more", "less", "better", "worse", "different"];

pub(crate) fn check(workspace: &Workspace) -> Vec<String> {
    let files = workspace.files.iter().chain(&workspace.documents);
    files
        .filter(|file| !LISTS.contains(&file.path.as_str()) && !is_test(&file.path))
        .flat_map(check_file)
        .collect()
}

/// Tests have principals and sessions with such names.
fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.contains("/benches/")
}

fn check_file(file: &SourceFile) -> Vec<String> {
    let mut violations = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        // Only the first letter may be a capital, so that a name such as `NoBody` is not taken for a word.
        let line: String = line.split_inclusive(' ').map(uncapitalized).collect();
        let place = format!("{}:{}", file.path, index + 1);
        for (phrase, instead) in BANNED {
            if has_phrase(&line, phrase) {
                violations.push(format!("{place}: \"{phrase}\": write {instead}"));
            }
        }
        if says_is_no(&line) {
            violations.push(format!("{place}: \"is no\": write \"is not a\""));
        }
    }
    violations
}

fn uncapitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// Whether a phrase stands in a line as whole words. Identifiers are not prose.
fn has_phrase(line: &str, phrase: &str) -> bool {
    line.match_indices(phrase).any(|(at, found)| {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line
            .get(at + found.len()..)
            .and_then(|text| text.chars().next());
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// Whether "is no" stands where "is not a" is meant: "there is no" is plain English.
fn says_is_no(line: &str) -> bool {
    line.match_indices(" is no ").any(|(at, found)| {
        let subject = line.get(..at).unwrap_or_default();
        let subject = subject
            .rsplit(|letter: char| !letter.is_alphanumeric())
            .next();
        let rest = line.get(at + found.len()..).unwrap_or_default();
        let next = rest.split(|letter: char| !letter.is_alphanumeric()).next();
        subject != Some("there") && next.is_some_and(|next| !AFTER_IS_NO.contains(&next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn riddles_are_found_as_whole_words_with_their_line() {
        let file = SourceFile {
            path: "docs/a.md".to_owned(),
            text:
                "Fine.\nNobody calls it.\nfn nobody_calls() {}\nThere is no link.\nIt is no link.\n"
                    .to_owned(),
        };
        assert_eq!(
            check_file(&file),
            [
                "docs/a.md:2: \"nobody\": write no caller, no one: name the subject",
                "docs/a.md:5: \"is no\": write \"is not a\"",
            ]
        );
    }

    #[test]
    fn ordinary_uses_pass() {
        for line in ["it is no longer open", "whoeverest", "there is no answer"] {
            assert!(!says_is_no(line), "{line}");
        }
        assert!(!has_phrase("input downstream", "put down"));
    }
}
