//! Infers what a tool does from the words in its name and description. Only whole words count, and
//! every run gives the same answer.

mod vocabulary;
mod words;

use serde_json::Value;
use toolwarden_model::json::Object;
use toolwarden_model::{Domain, Evidence, Format, Hints, HintsEvidence, Tool};

use vocabulary::{Verb, VerbEffect};

/// How many words of a description are read: its start says what the tool does, the rest how.
const DESCRIPTION_WORDS: usize = 10;

/// Infers the hints that the definition does not state: from annotations first, then from words.
pub(crate) fn infer(tool: &mut Tool) {
    let stated = tool.evidence.states_any();
    let (hints, evidence) = infer_hints(tool);
    // A JSON Schema document always states capabilities, whether its author meant to or not. They
    // count as stated only where they differ from the inferred ones.
    if stated && tool.format == Format::JsonSchema && hints != tool.hints {
        return;
    }
    if !stated || tool.format == Format::JsonSchema {
        (tool.hints, tool.evidence) = (hints, evidence);
        return;
    }
    fill_in(tool, hints, evidence);
}

/// Copies the inferred hints that the definition does not state explicitly.
fn fill_in(tool: &mut Tool, hints: Hints, evidence: HintsEvidence) {
    let open = |evidence: Evidence| evidence != Evidence::Explicit;
    if open(tool.evidence.action) {
        (tool.hints.action, tool.evidence.action) = (hints.action, evidence.action);
    }
    if open(tool.evidence.domain) {
        (tool.hints.domain, tool.evidence.domain) = (hints.domain, evidence.domain);
    }
    if open(tool.evidence.side_effects) {
        (tool.hints.side_effects, tool.evidence.side_effects) =
            (hints.side_effects, evidence.side_effects);
    }
    if open(tool.evidence.idempotent) {
        (tool.hints.idempotent, tool.evidence.idempotent) = (hints.idempotent, evidence.idempotent);
    }
}

fn infer_hints(tool: &Tool) -> (Hints, HintsEvidence) {
    let WordHints { verb, domain } = WordHints::from_words(&tool.name, &tool.description);
    let by_words = |found: bool| {
        if found {
            Evidence::Inferred
        } else {
            Evidence::Default
        }
    };
    let side_effects = verb
        .as_ref()
        .is_some_and(|verb| verb.effect != VerbEffect::None);
    let mut hints = Hints {
        action: verb.as_ref().map_or("read", |verb| verb.action).into(),
        domain: domain.map_or(Domain::General, |(_, domain)| domain),
        side_effects,
        idempotent: !side_effects,
        ..Hints::default()
    };
    let mut evidence = HintsEvidence {
        action: by_words(verb.is_some()),
        domain: by_words(domain.is_some()),
        side_effects: by_words(verb.is_some()),
        idempotent: by_words(verb.is_some()),
        cost_estimate: Evidence::Default,
    };
    if let Some(annotations) = &tool.annotations {
        apply_annotations(annotations, &mut hints, &mut evidence);
    }
    (hints, evidence)
}

/// Whether the tool's words say that it destroys something.
#[must_use]
pub fn sounds_destructive(tool: &Tool) -> bool {
    WordHints::from_words(&tool.name, &tool.description)
        .verb
        .is_some_and(|verb| verb.effect == VerbEffect::Destroys)
}

/// Lets the server's annotations override what the words suggest.
fn apply_annotations(annotations: &Object, hints: &mut Hints, evidence: &mut HintsEvidence) {
    let hint = |key: &str| annotations.get(key).and_then(Value::as_bool);
    let read_only = hint("readOnlyHint");
    if let Some(read_only) = read_only {
        hints.side_effects = !read_only;
        evidence.side_effects = Evidence::Annotation;
    } else if hint("destructiveHint") == Some(true) {
        hints.side_effects = true;
        evidence.side_effects = Evidence::Annotation;
    }
    if evidence.side_effects == Evidence::Annotation {
        hints.idempotent = !hints.side_effects;
        evidence.idempotent = Evidence::Annotation;
    }
    // A tool that changes nothing is idempotent, whatever its annotations say.
    if let Some(idempotent) = hint("idempotentHint").filter(|_| read_only != Some(true)) {
        hints.idempotent = idempotent;
        evidence.idempotent = Evidence::Annotation;
    }
}

/// The hints found in the words of a name and a description.
#[derive(Default)]
struct WordHints {
    verb: Option<Verb>,
    domain: Option<(u8, Domain)>,
}

impl WordHints {
    /// The first verb of the name decides, else the first at the start of the description. The
    /// most telling domain word decides, and words of the name come before those of the description.
    fn from_words(name: &str, description: &str) -> Self {
        let mut told = Self::default();
        let mut after_connective = false;
        words::for_each_word(name, usize::MAX, |word| {
            match &told.verb {
                None => told.verb = vocabulary::verb(word),
                // `get_or_create` does more than read.
                Some(first) if after_connective && first.effect == VerbEffect::None => {
                    told.verb = vocabulary::verb(word).or(told.verb);
                }
                Some(_) => {}
            }
            after_connective = matches!(word, b"or" | b"and");
            told.add_domain(vocabulary::domain(word));
        });
        let in_name = told
            .domain
            .filter(|(rank, _)| *rank < vocabulary::WEAK_RANK);
        if told.verb.is_some() && in_name.is_some() {
            return told;
        }
        let verb_wanted = told.verb.is_none();
        words::for_each_word(description, DESCRIPTION_WORDS, |word| {
            if verb_wanted && told.verb.is_none() {
                told.verb = vocabulary::verb(word).or_else(|| vocabulary::inflected_verb(word));
            }
            if in_name.is_none() {
                told.add_domain(vocabulary::domain(word));
            }
        });
        told
    }

    fn add_domain(&mut self, found: Option<(u8, Domain)>) {
        if let Some((rank, _)) = found
            && self.domain.is_none_or(|(best, _)| rank < best)
        {
            self.domain = found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hints(name: &str, description: &str) -> (String, &'static str, bool, bool) {
        let mut tool = Tool::new(Format::Raw);
        tool.name = name.to_owned();
        tool.description = description.to_owned();
        infer(&mut tool);
        (
            tool.hints.action.into_owned(),
            tool.hints.domain.as_str(),
            tool.hints.side_effects,
            tool.hints.idempotent,
        )
    }

    #[test]
    fn the_flagship_gives_the_same_answer_on_every_run() {
        for _ in 0..100 {
            let search = hints("search_web", "Search the web for a query string");
            assert_eq!(search, ("search".to_owned(), "web", false, true));
            let read = hints("read_file", "Read the contents of a file at the given path");
            assert_eq!(read, ("read".to_owned(), "filesystem", false, true));
        }
    }

    #[test]
    fn verbs_the_original_missed_are_side_effects() {
        for verb in [
            "drop", "transfer", "execute", "run", "set", "insert", "deploy", "purge", "kill",
        ] {
            assert!(hints(&format!("{verb}_thing"), "").2, "{verb}");
            assert_eq!(hints(verb, "").0, verb);
        }
    }

    #[test]
    fn words_inside_words_tell_nothing() {
        for name in ["profile", "postcode", "widget", "capital"] {
            let mut tool = Tool::new(Format::Raw);
            tool.name = name.to_owned();
            infer(&mut tool);
            assert_eq!(
                tool.evidence,
                HintsEvidence::all(Evidence::Default),
                "{name}"
            );
        }
    }

    #[test]
    fn names_are_split_at_every_kind_of_boundary() {
        for name in [
            "delete_user",
            "delete-user",
            "deleteUser",
            "DeleteUser",
            "user.delete",
            "users/delete",
            "DELETE_USER",
            "v1DeleteHTTPUser",
        ] {
            assert_eq!(hints(name, "").0, "delete", "{name}");
        }
        assert_eq!(
            hints("get_or_create_user", ""),
            ("create".to_owned(), "general", true, false)
        );
        assert_eq!(
            hints("list_updates", ""),
            ("list".to_owned(), "general", false, true)
        );
    }

    #[test]
    fn annotations_win_over_words_and_explicit_over_all() {
        let mut tool = Tool::new(Format::Mcp);
        tool.name = "delete_user".to_owned();
        tool.annotations = json!({"readOnlyHint": true, "idempotentHint": false})
            .as_object()
            .cloned();
        infer(&mut tool);
        assert_eq!(
            (tool.hints.side_effects, tool.hints.idempotent),
            (false, true)
        );
        assert_eq!(tool.evidence.side_effects, Evidence::Annotation);
        assert_eq!(tool.evidence.action, Evidence::Inferred);
        tool.annotations = json!({"readOnlyHint": false, "idempotentHint": true})
            .as_object()
            .cloned();
        infer(&mut tool);
        assert_eq!(
            (tool.hints.side_effects, tool.hints.idempotent),
            (true, true)
        );
        tool.evidence = HintsEvidence::all(Evidence::Explicit);
        tool.hints.side_effects = false;
        infer(&mut tool);
        assert!(!tool.hints.side_effects);
    }
}
