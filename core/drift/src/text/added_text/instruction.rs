//! Sentences that instruct the model instead of describing the tool.

use super::token::WordToken;

/// Actions that an instruction can demand of a model.
const VERBS: &[&str] = &[
    "add",
    "answer",
    "append",
    "approve",
    "ask",
    "assume",
    "attach",
    "begin",
    "call",
    "check",
    "choose",
    "confirm",
    "consider",
    "copy",
    "create",
    "delete",
    "disclose",
    "display",
    "email",
    "execute",
    "fetch",
    "follow",
    "forward",
    "get",
    "give",
    "hide",
    "include",
    "inform",
    "invoke",
    "list",
    "load",
    "log",
    "mention",
    "notify",
    "obey",
    "open",
    "output",
    "pass",
    "paste",
    "post",
    "prefer",
    "present",
    "print",
    "prioritize",
    "provide",
    "query",
    "read",
    "remove",
    "reply",
    "report",
    "request",
    "respond",
    "retry",
    "return",
    "reveal",
    "run",
    "save",
    "say",
    "search",
    "send",
    "set",
    "share",
    "show",
    "skip",
    "start",
    "stop",
    "store",
    "summarize",
    "tell",
    "transfer",
    "transmit",
    "treat",
    "trust",
    "update",
    "upload",
    "use",
    "verify",
    "visit",
    "wait",
    "warn",
    "write",
];

/// The addressees of an instruction.
const READER: &[&str] = &[
    "you",
    "agent",
    "agents",
    "assistant",
    "assistants",
    "model",
    "models",
    "llm",
    "llms",
    "ai",
    "claude",
    "chatgpt",
    "gpt",
    "copilot",
];

/// Words that demand obedience when written in capitals.
const SHOUTS: &[&str] = &[
    "important",
    "critical",
    "mandatory",
    "urgent",
    "override",
    "attention",
    "imperative",
];

const EARLIER: &[&str] = &[
    "instruction",
    "instructions",
    "rule",
    "rules",
    "prompt",
    "prompts",
    "policy",
    "policies",
    "guideline",
    "guidelines",
    "restriction",
    "restrictions",
    "warning",
    "warnings",
    "previous",
    "prior",
    "earlier",
];

const SEND: &[&str] = &[
    "send", "forward", "copy", "share", "upload", "email", "post", "transmit", "append", "attach",
    "include", "paste", "pass", "add", "repeat", "output",
];

const CONVERSATION: &[&str] = &[
    "conversation",
    "conversations",
    "transcript",
    "transcripts",
    "prompt",
    "prompts",
    "chat",
];

/// The instructions that contain an added word, each as the words that show it.
pub(super) fn find_instructions(words: &[WordToken<'_>]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for at in 0..words.len() {
        let Some(length) = at_word(words, at) else {
            continue;
        };
        let shown = words.iter().skip(at).take(length);
        if shown.clone().any(|word| word.added) {
            let text = shown.map(|word| word.raw).collect::<Vec<_>>().join(" ");
            if !found.contains(&text) {
                found.push(text);
            }
        }
    }
    found
}

/// The number of words of the instruction that starts here, if one does.
fn at_word(words: &[WordToken<'_>], at: usize) -> Option<usize> {
    let word = words.get(at)?;
    let before = |back: usize| at.checked_sub(back).and_then(|at| words.get(at));
    let to = |reach: usize, choices: &[&str]| within(words, at, reach, choices);
    match word.lower.as_str() {
        "always" | "never" => to(3, VERBS),
        "must" | "should" | "shall" => {
            let is_reader = |back| before(back).is_some_and(|it| READER.contains(&&*it.lower));
            let addressed = is_reader(1) || is_reader(2) || word.is_uppercase();
            addressed.then(|| to(3, VERBS)).flatten()
        }
        "do" if next_is(words, at, "not") => to(4, VERBS),
        "don't" | "dont" => to(3, VERBS),
        "remember" | "please" => to(3, VERBS),
        "make" | "be" if next_is(words, at, "sure") => to(4, VERBS),
        "first" if before(1).is_none_or(|it| it.ends) => to(2, VERBS),
        "before" | "after" | "whenever" => to(
            3,
            &[
                "using",
                "calling",
                "invoking",
                "running",
                "answering",
                "responding",
                "replying",
            ],
        ),
        "ignore" | "disregard" | "forget" | "bypass" => to(5, EARLIER),
        "note" | "instruction" | "instructions" | "message" => {
            let is_to = next_is(words, at, "to") || next_is(words, at, "for");
            is_to.then(|| to(4, READER)).flatten()
        }
        "you" if next_is(words, at, "are") && within(words, at, 3, &["now"]).is_some() => Some(3),
        "secretly" | "silently" | "covertly" => to(3, VERBS),
        lower if SHOUTS.contains(&lower) && word.is_uppercase() => Some(1),
        lower if SEND.contains(&lower) => to(8, CONVERSATION),
        _ => None,
    }
}

fn next_is(words: &[WordToken<'_>], at: usize, expected: &str) -> bool {
    let goes_on = words.get(at).is_some_and(|word| !word.ends);
    goes_on && words.get(at + 1).is_some_and(|word| word.lower == expected)
}

/// The number of words from here to one of these, within the sentence and a limit.
fn within(words: &[WordToken<'_>], at: usize, reach: usize, choices: &[&str]) -> Option<usize> {
    for step in 1..=reach {
        if words.get(at + step - 1).is_none_or(|word| word.ends) {
            return None;
        }
        let word = words.get(at + step)?;
        if choices.contains(&&*word.lower) {
            return Some(step + 1);
        }
    }
    None
}
