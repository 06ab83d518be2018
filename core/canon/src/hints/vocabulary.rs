use toolwarden_model::Domain;

/// What a verb does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    Changes,
    Destroys,
}

/// A verb that tells what a tool does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verb {
    pub(super) action: &'static str,
    pub(super) effect: Effect,
}

/// Domain words from this rank on only count where no other word does.
pub(super) const WEAK_RANK: u8 = 10;

// INVARIANT: the lists of verbs are sorted, for they are searched by halving.

/// Reading verbs that are actions of their own.
const READING: &[&str] = &["fetch", "find", "get", "list", "query", "read", "search"];

/// Words that tell of reading without naming one of those actions.
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
const DOMAINS: &[(&str, u8, Domain)] = &[
    ("file", 0, Domain::Filesystem),
    ("files", 0, Domain::Filesystem),
    ("filesystem", 0, Domain::Filesystem),
    ("folder", 0, Domain::Filesystem),
    ("directory", 0, Domain::Filesystem),
    ("sql", 1, Domain::Database),
    ("database", 1, Domain::Database),
    ("databases", 1, Domain::Database),
    ("http", 2, Domain::Web),
    ("web", 2, Domain::Web),
    ("website", 2, Domain::Web),
    ("code", 3, Domain::Code),
    ("email", 4, Domain::Email),
    ("emails", 4, Domain::Email),
    ("mail", 4, Domain::Email),
    ("api", WEAK_RANK, Domain::Web),
    ("search", WEAK_RANK + 1, Domain::Web),
];

/// The verb a word is in its base form.
pub(super) fn verb(word: &[u8]) -> Option<Verb> {
    let find =
        |verbs: &'static [&'static str]| verbs.iter().find(|verb| verb.as_bytes() == word).copied();
    let plain = |effect| move |action| Verb { action, effect };
    find(READING)
        .map(plain(Effect::None))
        .or_else(|| {
            find(ALSO_READING).map(|_| Verb {
                action: "read",
                effect: Effect::None,
            })
        })
        .or_else(|| find(CHANGING).map(plain(Effect::Changes)))
        .or_else(|| find(DESTROYING).map(plain(Effect::Destroys)))
}

/// The verb of a word in the third person: `deletes`, `searches`, `modifies`.
pub(super) fn inflected_verb(word: &[u8]) -> Option<Verb> {
    let stem = word.strip_suffix(b"s")?;
    verb(stem)
        .or_else(|| verb(stem.strip_suffix(b"e")?))
        .or_else(|| {
            let mut base = stem.strip_suffix(b"ie")?.to_vec();
            base.push(b'y');
            verb(&base)
        })
}

/// The domain a word belongs to, with its rank: smaller is more telling.
pub(super) fn domain(word: &[u8]) -> Option<(u8, Domain)> {
    let found = DOMAINS
        .iter()
        .find(|(spelling, _, _)| spelling.as_bytes() == word);
    found.map(|(_, rank, domain)| (*rank, *domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_sorted_and_in_one_list_only() {
        let lists = [READING, ALSO_READING, CHANGING, DESTROYING];
        for list in lists {
            assert!(list.is_sorted(), "{list:?}");
        }
        let mut all = lists.concat();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
