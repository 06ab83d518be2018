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
}

/// Reads the facts of every list in a text of one or more JSON documents: objects with `tools`, and
/// responses to `tools/list`, alone or in an array.
#[must_use]
pub fn list_facts(text: &str) -> ListFacts {
    let mut facts = ListFacts::default();
    // Most lists have neither, and need no second look.
    if !text.contains("nextCursor") && !text.contains("instructions") {
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
}
