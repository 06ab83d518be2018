use serde_json::value::RawValue;
use toolwarden_model::json::{Pointer, RawObject};

/// What saved lists of tools say beside their tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFacts {
    /// Where a list says that it continues on another page.
    pub next_cursors: Vec<Pointer>,
    /// The number of lists that say nothing of the kind.
    pub ended: usize,
    /// What the server tells models about itself, and where.
    pub instructions: Vec<(Pointer, String)>,
    /// Members beside the tools that agents or models get too and that no tool is read from.
    pub beside: Vec<BesideTools>,
}

/// A member of a request or response that stands beside its list of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BesideTools {
    /// Its place.
    pub pointer: Pointer,
    /// Its key.
    pub key: &'static str,
    /// Its text, as received.
    pub text: String,
    /// Whether it is text for the model; anything else has a meaning that is not known.
    pub is_prose: bool,
}

/// Members that hold text for the model.
const PROSE: &[&str] = &[
    "system",
    "systemInstruction",
    "system_instruction",
    "instructions",
];

/// Members that give an agent more tools, or say which it may use.
const OTHERS: &[&str] = &[
    "allowed_tools",
    "mcpServers",
    "mcp_servers",
    "plugins",
    "prompts",
    "resourceTemplates",
    "resources",
    "server",
    "servers",
    "toolChoice",
    "tool_choice",
    "tool_resources",
    "toolsets",
];

/// Reads the facts of every list in a text of one or more JSON documents: objects with `tools`, and
/// responses to `tools/list`, alone or in an array.
#[must_use]
pub fn list_facts(text: &str) -> ListFacts {
    let mut facts = ListFacts::default();
    // Most lists have neither, and need no second look.
    let keys = PROSE.iter().chain(OTHERS).chain(&["nextCursor"]);
    if !keys.into_iter().any(|key| text.contains(key)) {
        facts.ended = 1;
        return facts;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let documents = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    for document in documents.map_while(Result::ok) {
        let document = document.get();
        match serde_json::from_str::<Vec<&RawValue>>(document) {
            Ok(elements) => {
                // An array of definitions is a whole list; an array of responses has one list in each.
                let before = facts.clone();
                for (index, element) in elements.iter().enumerate() {
                    facts.add(element.get(), &Pointer::root().index(index));
                }
                if facts == before {
                    facts.ended += 1;
                }
            }
            Err(_) => facts.add(document, &Pointer::root()),
        }
    }
    facts
}

impl ListFacts {
    /// Adds what an object says of its list, and of the list in its `result`.
    fn add(&mut self, text: &str, at: &Pointer) {
        let Ok(members) = serde_json::from_str::<RawObject<'_>>(text) else {
            return;
        };
        let get = |key: &str| members.received(key);
        if get("tools").is_some_and(|tools| tools.starts_with('[')) {
            let string = |key| get(key).and_then(|it| serde_json::from_str::<String>(it).ok());
            // Some servers end with an empty cursor instead of none.
            match string("nextCursor").filter(|cursor| !cursor.is_empty()) {
                Some(_) => self.next_cursors.push(at.child("nextCursor")),
                None => self.ended += 1,
            }
            if let Some(said) = string("instructions") {
                self.instructions.push((at.child("instructions"), said));
            }
        }
        let is_list = |key: &str, open: char| get(key).is_some_and(|it| it.starts_with(open));
        if is_list("tools", '[') || is_list("functions", '[') || is_list("toolConfig", '{') {
            let members = PROSE.iter().map(|key| (*key, true));
            let members = members.chain(OTHERS.iter().map(|key| (*key, false)));
            for (key, is_prose) in members {
                let text = get(key).filter(|it| !matches!(*it, "null" | "[]" | "{}" | "\"\""));
                // Instructions that are one text were read above.
                let read = key == "instructions" && is_list("tools", '[') && is_list(key, '"');
                self.beside
                    .extend(text.filter(|_| !read).map(|text| BesideTools {
                        pointer: at.child(key),
                        key,
                        text: text.to_owned(),
                        is_prose,
                    }));
            }
        }
        if let Some(result) = get("result").filter(|it| it.starts_with('{')) {
            self.add(result, &at.child("result"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_of_a_text_is_read() {
        let facts = |cursors: &[&str], ended: usize, said: &[(&str, &str)]| ListFacts {
            next_cursors: cursors.iter().map(|it| Pointer::from(*it)).collect(),
            ended,
            instructions: said
                .iter()
                .map(|(at, text)| (Pointer::from(*at), (*text).to_owned()))
                .collect(),
            beside: Vec::new(),
        };
        for (text, expected) in [
            (r#"{"tools": []}"#, facts(&[], 1, &[])),
            (r#"[{"name": "instructions"}]"#, facts(&[], 1, &[])),
            (
                r#"{"tools": [], "nextCursor": "2"}"#,
                facts(&["/nextCursor"], 0, &[]),
            ),
            (r#"{"tools": [], "nextCursor": ""}"#, facts(&[], 1, &[])),
            (r#"{"tools": [], "nextCursor": null}"#, facts(&[], 1, &[])),
            (
                r#"{"result": {"tools": [], "nextCursor": "2"}} {"result": {"tools": []}}"#,
                facts(&["/result/nextCursor"], 1, &[]),
            ),
            (
                r#"[{"result": {"tools": [], "nextCursor": "2"}}]"#,
                facts(&["/0/result/nextCursor"], 0, &[]),
            ),
            (
                r#"{"tools": [], "instructions": "a", "result": {"tools": [], "instructions": "b"}}"#,
                facts(
                    &[],
                    2,
                    &[("/instructions", "a"), ("/result/instructions", "b")],
                ),
            ),
        ] {
            assert_eq!(list_facts(text), expected, "{text}");
        }
    }

    #[test]
    fn members_beside_the_tools_are_listed() {
        let text = r#"{"tools": [], "system": "Be brief", "mcp_servers": [{"url": "u"}], "prompts": [],
            "model": "m", "result": {"tools": [], "prompts": [{"name": "p"}]}}"#;
        let found: Vec<(String, String, bool)> = list_facts(text)
            .beside
            .into_iter()
            .map(|it| (it.pointer.to_string(), it.text, it.is_prose))
            .collect();
        let expected = [
            ("/system", r#""Be brief""#, true),
            ("/mcp_servers", r#"[{"url": "u"}]"#, false),
            ("/result/prompts", r#"[{"name": "p"}]"#, false),
        ];
        let expected = expected.map(|(at, text, prose)| (at.to_owned(), text.to_owned(), prose));
        assert_eq!(found, expected);
        // A definition that has such a member is not a list.
        assert_eq!(list_facts(r#"[{"name": "a", "server": "x"}]"#).beside, []);
    }
}
