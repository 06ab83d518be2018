use toolwarden_model::Domain;

use super::words::Word;

/// The side effect of a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VerbEffect {
    None,
    Changes,
    Destroys,
}

/// A verb that indicates what a tool does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verb {
    pub(super) action: &'static str,
    pub(super) effect: VerbEffect,
}

/// Domain words from this rank on only count where no other word does.
pub(super) const WEAK_RANK: u8 = 10;

/// Reading verbs that are separate actions.
const READING: &[&str] = &["fetch", "find", "get", "list", "query", "read", "search"];

/// Words that indicate reading without naming one of those actions.
const ALSO_READING: &[&str] = &[
    "analyse",
    "analyze",
    "audit",
    "browse",
    "calculate",
    "check",
    "compare",
    "compute",
    "count",
    "decode",
    "describe",
    "details",
    "detect",
    "diff",
    "discover",
    "encode",
    "estimate",
    "explain",
    "explore",
    "filter",
    "health",
    "history",
    "info",
    "inspect",
    "look",
    "lookup",
    "parse",
    "ping",
    "preview",
    "retrieve",
    "return",
    "scan",
    "show",
    "stats",
    "status",
    "summarise",
    "summarize",
    "summary",
    "validate",
    "verify",
    "view",
];

const CHANGING: &[&str] = &[
    "activate",
    "add",
    "append",
    "apply",
    "approve",
    "archive",
    "assign",
    "attach",
    "book",
    "buy",
    "cancel",
    "change",
    "charge",
    "checkout",
    "click",
    "clone",
    "close",
    "commit",
    "configure",
    "copy",
    "create",
    "deactivate",
    "deploy",
    "detach",
    "disable",
    "drag",
    "edit",
    "enable",
    "execute",
    "fill",
    "fire",
    "fork",
    "forward",
    "grant",
    "import",
    "ingest",
    "init",
    "initialize",
    "insert",
    "install",
    "invite",
    "invoke",
    "launch",
    "lock",
    "manage",
    "mark",
    "merge",
    "migrate",
    "modify",
    "mount",
    "move",
    "order",
    "patch",
    "pay",
    "post",
    "power",
    "press",
    "provision",
    "publish",
    "purchase",
    "push",
    "put",
    "rebuild",
    "refund",
    "regenerate",
    "register",
    "reject",
    "rename",
    "repair",
    "replace",
    "reply",
    "resend",
    "resize",
    "restart",
    "restore",
    "revert",
    "rotate",
    "run",
    "save",
    "scale",
    "schedule",
    "send",
    "set",
    "start",
    "stop",
    "submit",
    "subscribe",
    "swipe",
    "switch",
    "sync",
    "tap",
    "toggle",
    "transfer",
    "trigger",
    "unassign",
    "unlock",
    "unsubscribe",
    "update",
    "upgrade",
    "upload",
    "upsert",
    "write",
];

const DESTROYING: &[&str] = &[
    "clear",
    "delete",
    "destroy",
    "drop",
    "erase",
    "evict",
    "flush",
    "kill",
    "overwrite",
    "purge",
    "reboot",
    "remove",
    "reset",
    "revoke",
    "shutdown",
    "terminate",
    "truncate",
    "uninstall",
    "wipe",
];

/// Domain words, most telling first; the rank breaks ties.
static DOMAINS: &[(Word, u8, Domain)] = &[
    (Word::of("file"), 0, Domain::Filesystem),
    (Word::of("files"), 0, Domain::Filesystem),
    (Word::of("filesystem"), 0, Domain::Filesystem),
    (Word::of("folder"), 0, Domain::Filesystem),
    (Word::of("directory"), 0, Domain::Filesystem),
    (Word::of("sql"), 1, Domain::Database),
    (Word::of("database"), 1, Domain::Database),
    (Word::of("databases"), 1, Domain::Database),
    (Word::of("http"), 2, Domain::Web),
    (Word::of("web"), 2, Domain::Web),
    (Word::of("website"), 2, Domain::Web),
    (Word::of("code"), 3, Domain::Code),
    (Word::of("email"), 4, Domain::Email),
    (Word::of("emails"), 4, Domain::Email),
    (Word::of("mail"), 4, Domain::Email),
    (Word::of("api"), WEAK_RANK, Domain::Web),
    (Word::of("search"), WEAK_RANK + 1, Domain::Web),
];

/// Every verb of all lists, sorted by its word.
static VERBS: [(Word, Verb); VERB_COUNT] = sorted_verbs();

const VERB_COUNT: usize = READING.len() + ALSO_READING.len() + CHANGING.len() + DESTROYING.len();

#[expect(
    clippy::indexing_slicing,
    reason = "the compiler evaluates it and would refuse"
)]
const fn sorted_verbs() -> [(Word, Verb); VERB_COUNT] {
    let lists = [
        (READING, None, VerbEffect::None),
        (ALSO_READING, Some("read"), VerbEffect::None),
        (CHANGING, None, VerbEffect::Changes),
        (DESTROYING, None, VerbEffect::Destroys),
    ];
    let mut verbs = [(
        Word::of(""),
        Verb {
            action: "",
            effect: VerbEffect::None,
        },
    ); VERB_COUNT];
    let (mut count, mut list) = (0, 0);
    while list < lists.len() {
        let (texts, action, effect) = lists[list];
        let mut at = 0;
        while at < texts.len() {
            let action = match action {
                Some(action) => action,
                None => texts[at],
            };
            // Insertion sort: the one that a constant function can do in a few lines.
            let word = Word::of(texts[at]);
            let mut place = count;
            while place > 0 && word.is_before(verbs[place - 1].0) {
                verbs[place] = verbs[place - 1];
                place -= 1;
            }
            verbs[place] = (word, Verb { action, effect });
            count += 1;
            at += 1;
        }
        list += 1;
    }
    verbs
}

/// The verb a word is in its base form.
pub(super) fn verb(letters: &[u8]) -> Option<Verb> {
    // No verb is shorter or longer than these.
    if !(3..=11).contains(&letters.len()) {
        return None;
    }
    verb_word(Word::of_letters(letters))
}

fn verb_word(word: Word) -> Option<Verb> {
    let at = VERBS.binary_search_by_key(&word, |(word, _)| *word).ok()?;
    VERBS.get(at).map(|(_, verb)| *verb)
}

/// The verb of a word in the third person: `deletes`, `searches`, `modifies`.
pub(super) fn inflected_verb(letters: &[u8]) -> Option<Verb> {
    let word = Word::of_letters(letters);
    let endings = [("s", ""), ("es", ""), ("ies", "y")];
    endings
        .into_iter()
        .find_map(|(suffix, other)| word.replace_suffix(suffix, other).and_then(verb_word))
}

/// The domain a word belongs to, with its rank: smaller is more telling.
pub(super) fn domain(letters: &[u8]) -> Option<(u8, Domain)> {
    let may_start = matches!(
        letters.first()? | 0x20,
        b'a' | b'c'..=b'f' | b'h' | b'm' | b's' | b'w'
    );
    if !may_start || !(3..=10).contains(&letters.len()) {
        return None;
    }
    let word = Word::of_letters(letters);
    DOMAINS
        .iter()
        .find(|(known, _, _)| *known == word)
        .map(|(_, rank, domain)| (*rank, *domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_and_stands_in_one_list_only() {
        let mut all = [READING, ALSO_READING, CHANGING, DESTROYING].concat();
        assert!(all.iter().all(|word| verb(word.as_bytes()).is_some()));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), VERB_COUNT);
        assert!(VERBS.is_sorted_by_key(|(word, _)| *word));
        let texts = [
            "file",
            "directory",
            "filesystem",
            "database",
            "http",
            "web",
            "code",
            "email",
            "mail",
            "api",
            "search",
        ];
        assert!(texts.iter().all(|word| domain(word.as_bytes()).is_some()));
    }
}
