use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_schema::canonical_text;

/// Pairs with a lower similarity are two different things.
const THRESHOLD: f64 = 0.55;
/// The maximum number of names matched on either side.
const MAX_NAMES: usize = 64;

/// A renamed property or tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Rename {
    /// The name before.
    pub from: String,
    /// The name after.
    pub to: String,
    /// The similarity of the two, from 0 to 1.
    pub similarity: f64,
    /// For an argument: the member that a caller of the old name must send instead.
    pub adapter: Option<String>,
}

impl Rename {
    /// A renamed argument.
    pub(crate) fn for_argument(matched: &RenameMatch<'_>) -> Self {
        Self {
            from: matched.from.to_owned(),
            to: matched.to.to_owned(),
            similarity: matched.similarity,
            adapter: Some(format!(
                "{{{}: args[{}]}}",
                Value::from(matched.to),
                Value::from(matched.from)
            )),
        }
    }

    /// A renamed tool.
    pub(crate) fn for_tool(matched: &RenameMatch<'_>) -> Self {
        Self {
            from: matched.from.to_owned(),
            to: matched.to.to_owned(),
            similarity: matched.similarity,
            adapter: None,
        }
    }
}

/// A name that may have been renamed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RenameCandidate<'v> {
    pub(crate) name: &'v str,
    pub(crate) schema: Option<&'v Value>,
    pub(crate) description: &'v str,
}

/// Two names that are probably a rename.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RenameMatch<'v> {
    pub(crate) from: &'v str,
    pub(crate) to: &'v str,
    pub(crate) similarity: f64,
}

/// Matches removed names with added names, the most similar pairs first. Each name is used once.
pub(crate) fn match_renames<'v>(
    gone: &[RenameCandidate<'v>],
    come: &[RenameCandidate<'v>],
) -> Vec<RenameMatch<'v>> {
    let mut pairs = Vec::new();
    let read = |all: &[RenameCandidate<'v>]| -> Vec<CandidateTraits<'v>> {
        if gone.is_empty() || come.is_empty() {
            return Vec::new();
        }
        all.iter()
            .take(MAX_NAMES)
            .map(CandidateTraits::of)
            .collect()
    };
    let (gone_traits, come_traits) = (read(gone), read(come));
    for from in &gone_traits {
        for to in &come_traits {
            if are_opposed(from.name, to.name) {
                continue;
            }
            let likeness = similarity(from, to);
            if likeness >= THRESHOLD {
                pairs.push(RenameMatch {
                    from: from.name,
                    to: to.name,
                    similarity: likeness,
                });
            }
        }
    }
    pairs.sort_by(|a, b| {
        let by_likeness = b.similarity.total_cmp(&a.similarity);
        by_likeness.then_with(|| (a.from, a.to).cmp(&(b.from, b.to)))
    });
    let mut taken = BTreeSet::new();
    pairs.retain(|pair| {
        let free = !taken.contains(&(0, pair.from)) && !taken.contains(&(1, pair.to));
        if free {
            taken.insert((0, pair.from));
            taken.insert((1, pair.to));
        }
        free
    });
    pairs
}

/// The features of a candidate, read once for all pairs.
struct CandidateTraits<'v> {
    name: &'v str,
    schema: Option<&'v Value>,
    meaning: Option<String>,
    meaning_without_null: Option<String>,
    words: BTreeSet<String>,
}

impl<'v> CandidateTraits<'v> {
    fn of(candidate: &RenameCandidate<'v>) -> Self {
        let RenameCandidate {
            name,
            schema,
            description,
        } = *candidate;
        let meaning = schema.and_then(canonical_text);
        let narrowed = schema.map(without_null);
        let meaning_without_null = match (schema, narrowed) {
            (Some(whole), Some(narrowed)) if !std::ptr::eq(whole, narrowed) => {
                canonical_text(narrowed)
            }
            _ => meaning.clone(),
        };
        Self {
            name,
            schema,
            meaning,
            meaning_without_null,
            words: words(description),
        }
    }
}

fn similarity(from: &CandidateTraits<'_>, to: &CandidateTraits<'_>) -> f64 {
    let same = |from: &Option<String>, to: &Option<String>| from.is_some() && from == to;
    let schema = match (from.schema, to.schema) {
        (Some(_), Some(_)) if same(&from.meaning, &to.meaning) => 1.0,
        (Some(_), Some(_)) if same(&from.meaning_without_null, &to.meaning_without_null) => 0.9,
        (Some(from), Some(to)) if from.get("type") == to.get("type") => 0.4,
        (None, None) => 0.4,
        _ => 0.0,
    };
    let name = name_similarity(from.name, to.name);
    let (old, new) = (&from.words, &to.words);
    if old.is_empty() && new.is_empty() {
        return 0.5 * schema + 0.5 * name;
    }
    let shared = old.intersection(new).count();
    let all = old.union(new).count().max(1);
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of words are small numbers"
    )]
    let text = shared as f64 / all as f64;
    0.4 * schema + 0.4 * text + 0.2 * name
}

/// A schema without the null branch, if there is only one other branch.
fn without_null(schema: &Value) -> &Value {
    let branches = schema.get("anyOf").and_then(Value::as_array);
    let is_null = |branch: &&Value| branch.get("type").is_some_and(|word| word == "null");
    match branches.map(Vec::as_slice) {
        Some([first, second]) if is_null(&second) => first,
        Some([first, second]) if is_null(&first) => second,
        _ => schema,
    }
}

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Verbs with about the same meaning, one group per line: a rename does not change what a tool does.
const VERBS: &[&[&str]] = &[
    &[
        "get", "list", "read", "fetch", "search", "find", "query", "show", "describe", "view",
        "lookup", "retrieve",
    ],
    &["create", "add", "insert", "new", "register"],
    &[
        "update",
        "set",
        "edit",
        "modify",
        "patch",
        "change",
        "configure",
    ],
    &[
        "delete", "remove", "drop", "destroy", "clear", "purge", "wipe",
    ],
    &["send", "post", "publish", "reply", "forward"],
    &[
        "run", "execute", "exec", "trigger", "invoke", "launch", "start", "resume",
    ],
    &["stop", "cancel", "kill", "pause", "abort", "terminate"],
    &["upload", "write", "save", "export"],
    &["download", "import", "load"],
];

/// Words that reverse a meaning.
const OPPOSITES: &[(&str, &str)] = &[
    ("include", "exclude"),
    ("included", "excluded"),
    ("enable", "disable"),
    ("enabled", "disabled"),
    ("allow", "deny"),
    ("allowed", "denied"),
    ("allow", "block"),
    ("min", "max"),
    ("minimum", "maximum"),
    ("start", "end"),
    ("begin", "end"),
    ("before", "after"),
    ("from", "to"),
    ("source", "target"),
    ("source", "destination"),
    ("src", "dst"),
    ("input", "output"),
    ("old", "new"),
    ("first", "last"),
    ("show", "hide"),
    ("open", "closed"),
    ("read", "write"),
    ("asc", "desc"),
    ("public", "private"),
    ("lower", "upper"),
];

/// Whether two names differ in a word that gives them different meanings.
fn are_opposed(from: &str, to: &str) -> bool {
    let (from, to) = (name_words(from), name_words(to));
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these
            .iter()
            .filter(|part| !those.contains(part))
            .cloned()
            .collect()
    };
    let (gone, come) = (only(&from, &to), only(&to, &from));
    let is_pair = |a: &str, b: &str| {
        OPPOSITES
            .iter()
            .any(|pair| *pair == (a, b) || *pair == (b, a))
    };
    let group = |part: &String| {
        VERBS
            .iter()
            .position(|verbs| verbs.contains(&part.as_str()))
    };
    let verb = |parts: &[String]| parts.iter().find_map(group);
    let other_verb = matches!((verb(&from), verb(&to)), (Some(old), Some(new)) if old != new);
    other_verb || gone.iter().any(|a| come.iter().any(|b| is_pair(a, b)))
}

/// The words of a name, in lower case, whatever the naming convention.
pub(crate) fn name_words(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let breaks = !c.is_alphanumeric() || (c.is_uppercase() && was_lower);
        if breaks {
            parts.push(String::new());
        }
        was_lower = c.is_lowercase();
        if c.is_alphanumeric()
            && let Some(last) = parts.last_mut()
        {
            last.extend(c.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The share of neighbouring letter pairs that two names have in common; a name contained in the other
/// is half similar.
fn name_similarity(from: &str, to: &str) -> f64 {
    let (from, to) = (from.to_lowercase(), to.to_lowercase());
    let pairs = |name: &str| -> BTreeSet<(char, char)> {
        let letters: Vec<char> = name.chars().filter(|c| c.is_alphanumeric()).collect();
        letters
            .iter()
            .zip(letters.iter().skip(1))
            .map(|(a, b)| (*a, *b))
            .collect()
    };
    let (old, new) = (pairs(&from), pairs(&to));
    let inside = if from.contains(&to) || to.contains(&from) {
        0.5
    } else {
        0.0
    };
    if old.is_empty() || new.is_empty() {
        return inside;
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of letters are small numbers"
    )]
    let dice = 2.0 * old.intersection(&new).count() as f64 / (old.len() + new.len()) as f64;
    dice.max(inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_something_else_is_no_rename() {
        for (from, to) in [
            ("get_user", "delete_user"),
            ("trigger_dag", "delete_dag"),
            ("include", "exclude"),
            ("isEnabled", "is_disabled"),
            ("minValue", "max_value"),
        ] {
            assert!(are_opposed(from, to), "{from} {to}");
        }
        for (from, to) in [
            ("read-query", "read_query"),
            ("list_files", "get_files"),
            ("event_time", "eventTime"),
            ("ref", "target"),
            ("sam_deploy_tool", "sam_deploy"),
        ] {
            assert!(!are_opposed(from, to), "{from} {to}");
        }
    }

    #[test]
    fn what_is_alike_is_matched_and_what_is_not_is_not() {
        let text = json!({"type": "string", "description": "Exact target element reference from the page snapshot"});
        let longer = json!({"type": "string", "description": "Exact target element reference from the page snapshot, or a selector"});
        let count = json!({"type": "integer", "description": "How many clicks"});
        let of = |name: &'static str, schema: &'static Value| RenameCandidate {
            name,
            schema: Some(schema),
            description: schema["description"].as_str().unwrap(),
        };
        let (text, longer, count): (&'static _, &'static _, &'static _) = (
            Box::leak(Box::new(text)),
            Box::leak(Box::new(longer)),
            Box::leak(Box::new(count)),
        );
        let found = match_renames(
            &[of("ref", text), of("old", count)],
            &[of("target", longer), of("x", text)],
        );
        let names: Vec<(&str, &str)> = found.iter().map(|it| (it.from, it.to)).collect();
        assert_eq!(names, [("ref", "x")]);
        let found = match_renames(&[of("ref", text)], &[of("target", longer)]);
        assert_eq!(
            Rename::for_argument(&found[0]).adapter.as_deref(),
            Some(r#"{"target": args["ref"]}"#)
        );
        assert_eq!(
            match_renames(&[of("ref", text)], &[of("clicks", count)]),
            []
        );
    }
}
