//! The keys that a schema declares, and keys of a value that differ from one of them only in case.
//!
//! A schema that allows other keys accepts `Amount` beside `amount`. A server with a case-insensitive
//! parser would then act on a value that no rule was applied to.

use std::collections::HashMap;

use serde_json::Value;
use toolwarden_model::json::{Pointer, percent_decode};

use super::MAX_FAULTS;
use crate::decision::ValueFault;

/// The maximum number of steps for one value; a value that needs more is rejected.
const MAX_STEPS: usize = 5_000_000;

/// The keys that one schema declares, by place.
#[derive(Debug)]
pub(crate) struct DeclaredKeys {
    nodes: Vec<Node>,
}

/// One part of the schema. Numbers are indices into the list of parts.
#[derive(Debug, Default)]
struct Node {
    properties: HashMap<Box<str>, u32>,
    /// Each declared key, case-folded.
    folded: HashMap<Box<str>, Box<str>>,
    /// Whether patterns declare further keys.
    patterns: bool,
    /// Parts that apply to the same value.
    same: Vec<u32>,
    /// Parts that apply to members whose key is not declared.
    others: Vec<u32>,
    /// Parts that apply to elements of a list.
    items: Vec<u32>,
}

impl DeclaredKeys {
    /// Reads a schema; `None` if it declares no keys.
    pub(crate) fn of(schema: &Value) -> Option<Self> {
        let mut reading = DeclaredKeysReader {
            root: schema,
            numbers: HashMap::new(),
            nodes: Vec::new(),
            pending: Vec::new(),
        };
        reading.number(schema);
        while let Some((number, part)) = reading.pending.pop() {
            let node = reading.node(part);
            if let Some(place) = reading.nodes.get_mut(number) {
                *place = node;
            }
        }
        let nodes = reading.nodes;
        let declares = nodes.iter().any(|it| !it.properties.is_empty());
        declares.then_some(Self { nodes })
    }

    /// The keys of a value that differ from a declared one only in case.
    pub(crate) fn faults(&self, value: &Value) -> Vec<ValueFault> {
        let mut looking = KeyComparison {
            keys: self,
            seen: vec![0; self.nodes.len()],
            round: 0,
            steps: 0,
            faults: Vec::new(),
        };
        looking.visit(value, &[0], &mut Pointer::root());
        if looking.steps > MAX_STEPS {
            let message = "too many parts to compare their keys with the declared ones";
            looking
                .faults
                .push(ValueFault::for_whole_value(message.to_owned()));
        }
        looking.faults
    }
}

/// A case-folded key: a case-insensitive reader takes two keys with the same folded form for one. Some
/// letters have two lower-case forms (`s` and `ſ`) that share an upper case.
fn fold_case(key: &str) -> String {
    if key.is_ascii() {
        return key.to_ascii_lowercase();
    }
    key.to_uppercase().to_lowercase()
}

fn case_fault(pointer: Pointer, what: &str, key: &str) -> ValueFault {
    let message = format!("the key {pointer} differs from the {what} `{key}` only in case");
    ValueFault {
        pointer,
        masked: message.clone(),
        message,
    }
}

/// The keys of a value that differ only in case from a key on the path to a place.
pub(crate) fn case_variants_of(place: &Pointer, value: &Value) -> Vec<ValueFault> {
    let mut faults = Vec::new();
    let (mut at, mut value) = (Pointer::root(), value);
    for segment in place.segments() {
        let wanted = fold_case(&segment);
        let keys = value.as_object().into_iter().flat_map(|it| it.keys());
        let others = keys.filter(|key| **key != segment && fold_case(key) == wanted);
        faults.extend(others.map(|key| case_fault(at.child(key), "bound", &segment)));
        let Some(member) = Pointer::of([segment.as_str()]).find(value) else {
            break;
        };
        at.push(&segment);
        value = member;
    }
    faults
}

/// A schema while it is read.
struct DeclaredKeysReader<'s> {
    root: &'s Value,
    /// The number of each part, by its address in memory.
    numbers: HashMap<*const Value, u32>,
    nodes: Vec<Node>,
    pending: Vec<(usize, &'s Value)>,
}

impl<'s> DeclaredKeysReader<'s> {
    fn number(&mut self, part: &'s Value) -> Option<u32> {
        if !part.is_object() {
            return None;
        }
        let next = u32::try_from(self.nodes.len()).ok()?;
        let number = *self.numbers.entry(part).or_insert(next);
        if number == next {
            self.pending.push((self.nodes.len(), part));
            self.nodes.push(Node::default());
        }
        Some(number)
    }

    fn numbers_of(&mut self, parts: impl IntoIterator<Item = &'s Value>) -> Vec<u32> {
        parts
            .into_iter()
            .filter_map(|part| self.number(part))
            .collect()
    }

    fn node(&mut self, part: &'s Value) -> Node {
        let mut node = Node::default();
        for (key, member) in part.as_object().into_iter().flatten() {
            match key.as_str() {
                "properties" => {
                    for (name, part) in member.as_object().into_iter().flatten() {
                        let number = self.number(part).unwrap_or(u32::MAX);
                        node.properties.insert(name.as_str().into(), number);
                        let folded = fold_case(name).into_boxed_str();
                        node.folded.insert(folded, name.as_str().into());
                    }
                }
                "patternProperties" => {
                    let parts = member.as_object().into_iter().flatten();
                    let parts = parts.map(|(_, part)| part);
                    node.patterns = true;
                    node.others.extend(self.numbers_of(parts));
                }
                "additionalProperties" | "unevaluatedProperties" => {
                    node.others.extend(self.number(member));
                }
                "allOf" | "anyOf" | "oneOf" => {
                    let parts = member.as_array().into_iter().flatten();
                    node.same.extend(self.numbers_of(parts));
                }
                "if" | "then" | "else" => node.same.extend(self.number(member)),
                "dependentSchemas" | "dependencies" => {
                    let parts = member.as_object().into_iter().flatten();
                    let parts = parts.map(|(_, part)| part);
                    node.same.extend(self.numbers_of(parts));
                }
                "items" | "prefixItems" | "additionalItems" | "contains" | "unevaluatedItems" => {
                    let list = member.as_array().into_iter().flatten();
                    let parts = list.chain(member.is_object().then_some(member));
                    node.items.extend(self.numbers_of(parts));
                }
                "$ref" | "$recursiveRef" | "$dynamicRef" => {
                    let target = member.as_str().and_then(|it| it.strip_prefix('#'));
                    let target = target.and_then(percent_decode);
                    let target = target.and_then(|it| self.root.pointer(&it));
                    node.same.extend(target.and_then(|it| self.number(it)));
                }
                _ => {}
            }
        }
        node
    }
}

/// A value while its keys are compared with the declared ones.
struct KeyComparison<'k> {
    keys: &'k DeclaredKeys,
    /// The round in which each part was last visited.
    seen: Vec<u32>,
    round: u32,
    steps: usize,
    faults: Vec<ValueFault>,
}

impl<'k> KeyComparison<'k> {
    fn visit(&mut self, value: &Value, parts: &[u32], at: &mut Pointer) {
        if !(value.is_object() || value.is_array()) || self.steps > MAX_STEPS {
            return;
        }
        let nodes = self.applicable_nodes(parts);
        if let Some(items) = value.as_array() {
            let parts: Vec<u32> = nodes.iter().flat_map(|it| &it.items).copied().collect();
            if parts.is_empty() {
                return;
            }
            for (index, item) in items.iter().enumerate() {
                self.steps += 1;
                if item.is_object() || item.is_array() {
                    at.push(&index.to_string());
                    self.visit(item, &parts, at);
                    at.pop();
                }
            }
        }
        for (key, member) in value.as_object().into_iter().flatten() {
            self.steps += 1 + nodes.len();
            let declared = nodes.iter().filter_map(|it| it.properties.get(&**key));
            let mut parts: Vec<u32> = declared.copied().collect();
            let is_declared = !parts.is_empty();
            if !is_declared {
                self.compare(key, &nodes, at);
            }
            for node in &nodes {
                if !node.properties.contains_key(&**key) {
                    parts.extend(&node.others);
                }
            }
            if member.is_object() || member.is_array() {
                at.push(key);
                self.visit(member, &parts, at);
                at.pop();
            }
        }
    }

    /// Compares an undeclared key with the declared ones.
    fn compare(&mut self, key: &str, nodes: &[&'k Node], at: &Pointer) {
        if self.faults.len() >= MAX_FAULTS || nodes.iter().any(|it| it.patterns) {
            return;
        }
        let folded = fold_case(key);
        let declared = nodes.iter().find_map(|it| it.folded.get(&*folded));
        if let Some(declared) = declared {
            self.faults
                .push(case_fault(at.child(key), "declared", declared));
        }
    }

    /// The parts that apply to a value, each once.
    fn applicable_nodes(&mut self, parts: &[u32]) -> Vec<&'k Node> {
        self.round = self.round.wrapping_add(1);
        let mut nodes = Vec::new();
        let mut pending = parts.to_vec();
        while let Some(number) = pending.pop() {
            self.steps += 1;
            let number = number as usize;
            let Some(seen) = self.seen.get_mut(number) else {
                continue;
            };
            if *seen == self.round {
                continue;
            }
            *seen = self.round;
            if let Some(node) = self.keys.nodes.get(number) {
                pending.extend(&node.same);
                nodes.push(node);
            }
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn places(schema: &Value, value: &Value) -> Vec<String> {
        let keys = DeclaredKeys::of(schema);
        let faults = keys.map_or_else(Vec::new, |it| it.faults(value));
        faults.iter().map(|it| it.pointer.to_string()).collect()
    }

    #[test]
    fn keys_that_differ_in_case_are_found_wherever_keys_are_declared() {
        let schema = json!({
            "properties": {
                "amount": {"type": "number"},
                "to": {"$ref": "#/$defs/account"},
                "lines": {"items": {"anyOf": [{"properties": {"sku": {}}}, {"$ref": "#"}]}},
            },
            "additionalProperties": {"properties": {"note": {}}},
            "$defs": {"account": {"properties": {"iban": {}}, "allOf": [{"properties": {"bic": {}}}]}},
        });
        let value = json!({
            "amount": 1, "Amount": 2, "TO": {},
            "to": {"IBAN": "x", "bic": "y", "Bic": "z", "other": 1},
            "lines": [{"sku": 1}, {"Sku": 1, "AMOUNT": 2}],
            "extra": {"Note": 1},
        });
        let found = places(&schema, &value);
        let expected = [
            "/Amount",
            "/TO",
            "/to/IBAN",
            "/to/Bic",
            "/lines/1/Sku",
            "/lines/1/AMOUNT",
            "/extra/Note",
        ];
        let sorted = |mut it: Vec<String>| {
            it.sort();
            it
        };
        assert_eq!(sorted(found), sorted(expected.map(str::to_owned).to_vec()));
        let other = json!({"a": {"B": 1}});
        assert_eq!(places(&schema, &other), [""; 0]);
    }

    #[test]
    fn keys_that_are_declared_or_fit_a_pattern_pass() {
        let both = json!({"anyOf": [{"properties": {"id": {}}}, {"properties": {"ID": {}}}]});
        assert_eq!(places(&both, &json!({"id": 1, "ID": 2})), [""; 0]);
        assert_eq!(places(&both, &json!({"Id": 1})), ["/Id"]);
        let patterns = json!({"properties": {"id": {}}, "patternProperties": {"^[A-Z]+$": {}}});
        assert_eq!(places(&patterns, &json!({"ID": 1})), [""; 0]);
        let short = json!({"properties": {"signature": {}, "key": {}}});
        for key in ["SIGNATURE", "\u{17f}ignature", "\u{212a}ey"] {
            assert_eq!(places(&short, &json!({key: 1})), [format!("/{key}")]);
        }
        let named = json!({"properties": {"properties": {"properties": {"a": {}}}}});
        assert_eq!(
            places(&named, &json!({"properties": {"A": 1}})),
            ["/properties/A"]
        );
    }

    #[test]
    fn circles_end_and_work_is_bounded() {
        let circle = json!({"properties": {"a": {"$ref": "#"}}, "allOf": [{"$ref": "#"}]});
        assert_eq!(places(&circle, &json!({"a": {"a": {"A": 1}}})), ["/a/a/A"]);
        let many: Vec<Value> = (0..2_000)
            .map(|it| json!({"properties": {format!("k{it}"): {}}}))
            .collect();
        let wide = json!({"items": {"anyOf": many}});
        let value = json!((0..5_000).map(|it| json!({"x": it})).collect::<Vec<_>>());
        assert_eq!(places(&wide, &value), ["/"], "refused as a whole");
    }
}
