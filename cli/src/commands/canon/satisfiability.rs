//! Finds schemas that no value satisfies: the call they describe cannot be made.
//!
//! Most schemas cannot contradict themselves, and a look at their keywords shows it. The schema engine
//! decides about the rest, within a budget; what it cannot decide is not reported.

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer, percent_decode};
use toolwarden_model::keywords::subschemas;
use toolwarden_schema::{
    SchemaEquivalence, SearchBudget, ValueDomain, check_equivalence, schemas_outside_keywords,
};
use toolwarden_settings::ComparisonTimeouts;

/// A schema that no value satisfies.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Contradiction {
    /// Where in the schema of the tool.
    pub(super) pointer: Pointer,
    /// Whether the schema is one of several alternatives, so that others may still be satisfied.
    pub(super) is_alternative: bool,
    /// What is wrong, and what to write instead.
    pub(super) message: &'static str,
}

const NO_VALUE: &str = "no value satisfies this schema, so nothing can be given here; \
                        change the keywords that contradict each other";
const NO_OBJECT: &str = "arguments are an object, and this schema accepts no object; \
                         write `\"type\": \"object\"` and the arguments under `properties`";
const FORBIDDEN: &str = "the property is required and `false` forbids it, so no call is valid; \
                         remove it from `required`, or give it a schema";

/// The most questions asked about one schema.
const MAX_QUESTIONS: usize = 100;

/// Whether some value satisfies a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Satisfiable {
    Yes,
    No,
    /// Nothing said so far excludes it.
    Undecided,
}

/// Every schema inside a tool's schema that no value satisfies, each without those around it.
pub(super) fn find_contradictions(schema: &Object, domain: ValueDomain) -> Vec<Contradiction> {
    let budget = ComparisonTimeouts::INTERACTIVE.budget();
    let mut search = ContradictionSearch {
        root: schema,
        budget: SearchBudget {
            time: budget.time.start(),
            ..budget
        },
        questions: 0,
        found: Vec::new(),
    };
    if domain == ValueDomain::Objects && !admits_type(schema, "object") {
        search.report(&Pointer::root(), false, NO_OBJECT);
        return search.found;
    }
    search.visit_object(schema, &Pointer::root(), false, domain);
    let root = Value::Object(schema.clone());
    for at in schemas_outside_keywords(&root) {
        if let Some(schema) = at.find(&root) {
            search.visit(schema, &at, false);
        }
    }
    search.found
}

struct ContradictionSearch<'s> {
    root: &'s Object,
    budget: SearchBudget,
    questions: usize,
    found: Vec<Contradiction>,
}

impl ContradictionSearch<'_> {
    fn report(&mut self, at: &Pointer, is_alternative: bool, message: &'static str) {
        self.found.push(Contradiction {
            pointer: at.clone(),
            is_alternative,
            message,
        });
    }

    fn visit(&mut self, schema: &Value, at: &Pointer, is_alternative: bool) -> Satisfiable {
        match schema {
            Value::Object(members) => {
                self.visit_object(members, at, is_alternative, ValueDomain::Values)
            }
            Value::Bool(false) => Satisfiable::No,
            Value::Bool(true) => Satisfiable::Yes,
            // A value that is not a schema is another finding.
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Satisfiable::Undecided
            }
        }
    }

    fn visit_object(
        &mut self,
        schema: &Object,
        at: &Pointer,
        is_alternative: bool,
        domain: ValueDomain,
    ) -> Satisfiable {
        // This form is written on purpose.
        if is_never(schema) {
            return Satisfiable::No;
        }
        let before = self.found.len();
        let inside = self.visit_children(schema, at, is_alternative);
        if inside == Satisfiable::No {
            // What is inside was reported, unless all of it says so on purpose.
            return Satisfiable::No;
        }
        if self.found.len() > before || !may_contradict(schema) {
            return inside;
        }
        if self.has_no_value(schema, domain) {
            self.report(at, is_alternative, NO_VALUE);
            return Satisfiable::No;
        }
        inside
    }

    /// What the schemas inside say about this one.
    fn visit_children(
        &mut self,
        schema: &Object,
        at: &Pointer,
        is_alternative: bool,
    ) -> Satisfiable {
        let mut result = Satisfiable::Yes;
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)))
        };
        for keyword in ["properties", "patternProperties", "$defs", "definitions"] {
            let members = schema.get(keyword).and_then(Value::as_object);
            for (name, child) in members.into_iter().flatten() {
                let place = at.child(keyword).child(name);
                let found = self.visit(child, &place, is_alternative);
                if keyword == "properties" && found == Satisfiable::No && is_required(name) {
                    if child == &Value::Bool(false) {
                        self.report(&place, is_alternative, FORBIDDEN);
                    }
                    result = Satisfiable::No;
                }
            }
        }
        for keyword in ["items", "additionalProperties"] {
            if let Some(child @ Value::Object(_)) = schema.get(keyword) {
                self.visit(child, &at.child(keyword), is_alternative);
            }
        }
        for keyword in ["allOf", "anyOf", "oneOf", "prefixItems"] {
            let Some(children) = schema.get(keyword).and_then(Value::as_array) else {
                continue;
            };
            let is_choice = matches!(keyword, "anyOf" | "oneOf");
            let place = at.child(keyword);
            let found: Vec<Satisfiable> = children
                .iter()
                .enumerate()
                .map(|(index, child)| {
                    self.visit(child, &place.index(index), is_alternative || is_choice)
                })
                .collect();
            let none = match keyword {
                "allOf" => found.contains(&Satisfiable::No),
                "prefixItems" => false,
                _ => !found.is_empty() && found.iter().all(|it| *it == Satisfiable::No),
            };
            if none {
                result = Satisfiable::No;
            }
        }
        result
    }

    /// Whether it is proven that no value satisfies the schema.
    fn has_no_value(&mut self, schema: &Object, domain: ValueDomain) -> bool {
        self.questions += 1;
        if self.questions > MAX_QUESTIONS {
            return false;
        }
        let document = self_contained(schema, self.root);
        check_equivalence(&document, &Value::Bool(false), domain, self.budget)
            == SchemaEquivalence::Same
    }
}

/// The most schemas that are copied for one question.
const MAX_COPIES: usize = 500;

/// A schema as a document of its own, with the schemas of the whole that its references lead to.
fn self_contained(schema: &Object, root: &Object) -> Value {
    let mut document = schema.clone();
    for key in ["$schema", "$defs", "definitions"] {
        if let (Some(value), false) = (root.get(key), document.contains_key(key)) {
            document.insert(key.to_owned(), value.clone());
        }
    }
    let mut document = Value::Object(document);
    let identified = root.contains_key("$id") || root.contains_key("id");
    if identified {
        return document;
    }
    // Places other than definitions get a definition of their own, named after the place.
    let whole = Value::Object(root.clone());
    let mut copies = Object::new();
    let mut open = Vec::new();
    move_references(&mut document, &mut open);
    while let Some(place) = open.pop() {
        if copies.contains_key(place.as_str()) || copies.len() >= MAX_COPIES {
            continue;
        }
        let Some(target) = place.find(&whole) else {
            continue;
        };
        let mut target = target.clone();
        move_references(&mut target, &mut open);
        copies.insert(place.as_str().to_owned(), target);
    }
    if !copies.is_empty()
        && let Value::Object(document) = &mut document
    {
        let definitions = document
            .entry("$defs")
            .or_insert_with(|| Value::Object(Object::new()));
        if let Value::Object(definitions) = definitions {
            definitions.extend(copies);
        }
    }
    document
}

/// Points the references of a schema at copies of their targets, and lists these.
fn move_references(schema: &mut Value, places: &mut Vec<Pointer>) {
    let Value::Object(members) = schema else {
        return;
    };
    if let Some(Value::String(reference)) = members.get_mut("$ref")
        && let Some(place) = reference.strip_prefix('#')
        && (place.is_empty() || place.starts_with('/'))
    {
        let place = Pointer::from(&*percent_decode(place).unwrap_or_default());
        let first = place.segments().next();
        if !matches!(first.as_deref(), Some("$defs" | "definitions")) {
            *reference = format!("#{}", Pointer::of(["$defs", place.as_str()]));
            places.push(place);
        }
    }
    let inside: Vec<Pointer> = subschemas(members, &Pointer::root())
        .into_iter()
        .map(|(at, _)| at)
        .collect();
    for at in inside {
        if let Some(inside) = schema.pointer_mut(at.as_str()) {
            move_references(inside, places);
        }
    }
}

/// Whether the schema says in so many words that nothing satisfies it.
fn is_never(schema: &Object) -> bool {
    schema.get("not").is_some_and(|not| match not {
        Value::Bool(all) => *all,
        Value::Object(members) => members.is_empty(),
        _ => false,
    })
}

fn admits_type(schema: &Object, word: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == word,
        Some(Value::Array(words)) => words.iter().any(|it| it.as_str() == Some(word)),
        _ => true,
    }
}

/// Keywords that contradict a schema only together with another of them.
const BOUNDS: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "propertyNames",
];

/// Keywords that can contradict a schema together with anything.
const COMBINATIONS: &[&str] = &[
    "allOf",
    "oneOf",
    "not",
    "if",
    "const",
    "unevaluatedProperties",
];

/// Whether the keywords of the schema itself could exclude each other.
fn may_contradict(schema: &Object) -> bool {
    let has = |keyword: &&&str| schema.contains_key(**keyword);
    let bounds = BOUNDS.iter().filter(has).count();
    let choices = match schema.get("anyOf") {
        // Alternatives by themselves say nothing that they do not say alone.
        Some(_) => schema.contains_key("type") || bounds > 0,
        None => false,
    };
    let enumerates = schema.get("enum").and_then(Value::as_array);
    let limits_objects = schema.contains_key("required")
        && ["maxProperties", "propertyNames"]
            .iter()
            .any(|it| schema.contains_key(*it));
    let has_any = |keywords: &[&str]| keywords.iter().any(|it| schema.contains_key(*it));
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let needs_properties = schema.contains_key("minProperties") && is_closed
        || schema.contains_key("required")
            && has_any(&["patternProperties", "dependentRequired", "dependentSchemas"]);
    let is_odd_pattern = schema
        .get("pattern")
        .and_then(Value::as_str)
        .is_some_and(anchors_in_the_middle);
    let items = bounds > 0
        && ["items", "prefixItems"]
            .iter()
            .any(|it| schema.contains_key(*it))
        && schema.contains_key("minItems");
    bounds > 1
        || choices
        || limits_objects
        || needs_properties
        || is_odd_pattern
        || items
        || COMBINATIONS.iter().any(|it| has(&it))
        || schema.contains_key("$ref") && schema.len() > 1 && schema.contains_key("type")
        || enumerates.is_some_and(|values| {
            bounds > 0 || values.iter().all(|value| !admits_type_of(schema, value))
        })
}

/// Whether a pattern has a start after its start, an end before its end, or a class of nothing. Nearly
/// all patterns have none of these and match some text.
fn anchors_in_the_middle(pattern: &str) -> bool {
    let start = pattern.trim_start_matches(['^', '(', '?', ':', '|']);
    let end = start.trim_end_matches(['$', ')', '|']);
    let mut before = None;
    let mut in_class = false;
    for c in end.chars() {
        match c {
            '[' if before != Some('\\') => in_class = true,
            ']' if before != Some('\\') => in_class = false,
            '^' | '$' if before != Some('\\') && !in_class => return true,
            _ => {}
        }
        before = match (before, c) {
            (Some('\\'), '\\') => None,
            (_, c) => Some(c),
        };
    }
    pattern.contains("(?!)") || pattern.contains("[^\\s\\S]") || pattern.contains("[]")
}

/// Whether the `type` of the schema leaves room for a value.
fn admits_type_of(schema: &Object, value: &Value) -> bool {
    match value {
        Value::Null => admits_type(schema, "null"),
        Value::Bool(_) => admits_type(schema, "boolean"),
        Value::Number(_) => admits_type(schema, "number") || admits_type(schema, "integer"),
        Value::String(_) => admits_type(schema, "string"),
        Value::Array(_) => admits_type(schema, "array"),
        Value::Object(_) => admits_type(schema, "object"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(schema: &Value) -> Vec<(String, bool)> {
        let schema = schema.as_object().unwrap();
        find_contradictions(schema, ValueDomain::Objects)
            .into_iter()
            .map(|it| (it.pointer.as_str().to_owned(), it.is_alternative))
            .collect()
    }

    fn of_property(property: &Value) -> Vec<(String, bool)> {
        found(&json!({"type": "object", "properties": {"a": property}}))
    }

    #[test]
    fn keywords_that_exclude_each_other_are_found_at_their_place() {
        let contradictory = [
            json!({"type": "integer", "minimum": 5, "maximum": 1}),
            json!({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}),
            json!({"type": "number", "minimum": 1, "maximum": 2, "multipleOf": 5}),
            json!({"type": "string", "minLength": 3, "maxLength": 2}),
            json!({"type": "string", "pattern": "^abcd$", "maxLength": 2}),
            json!({"type": "string", "pattern": "^[0-9]{4}$", "minLength": 6}),
            json!({"type": "string", "pattern": "a^b"}),
            json!({"type": "object", "properties": {"x": {}}, "additionalProperties": false, "minProperties": 2}),
            json!({"type": "object", "required": ["ab"], "patternProperties": {"^a": false}}),
            json!({"type": "array", "contains": {}, "minContains": 2, "maxContains": 1}),
            json!({"type": "array", "minItems": 2, "maxItems": 1}),
            json!({"type": "array", "items": false, "minItems": 1}),
            json!({"type": "object", "minProperties": 2, "maxProperties": 1}),
            json!({"type": "object", "required": ["x", "y"], "maxProperties": 1}),
            json!({"type": "string", "enum": [1, 2]}),
            json!({"type": "string", "const": 1}),
            json!({"enum": [1, 2], "minimum": 3}),
            json!({"allOf": [{"type": "string"}, {"type": "integer"}]}),
            json!({"oneOf": [{"type": "string"}, {"type": "string"}]}),
            json!({"type": "string", "not": {"type": "string"}}),
            json!({"type": "string", "anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ];
        for property in contradictory {
            let expected = [("/properties/a".to_owned(), false)];
            assert_eq!(of_property(&property), expected, "{property}");
        }
    }

    #[test]
    fn schemas_that_some_value_satisfies_are_left_alone() {
        let satisfiable = [
            json!({"type": "integer", "minimum": 1, "maximum": 1}),
            json!({"type": "string", "minLength": 2, "maxLength": 2, "pattern": "^a"}),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"allOf": [{"type": "object"}, {"properties": {"x": {"type": "string"}}}]}),
            json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3}),
            // Written on purpose: the property must not be given.
            json!(false),
            json!({"not": {}}),
        ];
        for property in satisfiable {
            assert_eq!(of_property(&property), [], "{property}");
        }
    }

    #[test]
    fn the_innermost_contradiction_is_reported_and_not_those_around_it() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {
            "type": "object", "required": ["b"],
            "properties": {"b": {"type": "integer", "minimum": 5, "maximum": 1}}}}});
        let place = "/properties/a/properties/b".to_owned();
        assert_eq!(found(&schema), [(place, false)]);
        let forbidden = json!({"type": "object", "required": ["a"], "properties": {"a": false}});
        assert_eq!(found(&forbidden), [("/properties/a".to_owned(), false)]);
        let branch = json!({"type": "object", "properties": {"a": {
            "anyOf": [{"type": "string", "minLength": 2, "maxLength": 1}, {"type": "null"}]}}});
        let place = "/properties/a/anyOf/0".to_owned();
        assert_eq!(found(&branch), [(place, true)]);
    }

    #[test]
    fn arguments_must_be_an_object() {
        for schema in [
            json!({"type": "string"}),
            json!({"type": ["array", "null"]}),
        ] {
            assert_eq!(found(&schema), [(String::new(), false)], "{schema}");
        }
        assert_eq!(found(&json!({"const": 3})), [(String::new(), false)]);
        let results = json!({"type": "string"});
        let results = results.as_object().unwrap();
        assert_eq!(find_contradictions(results, ValueDomain::Values), []);
    }

    #[test]
    fn references_to_any_place_are_followed() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "b": {"allOf": [{"$ref": "#/properties/a"}, {"type": "integer"}]},
            "c": {"$ref": "#/components/schemas/n"}},
            "components": {"schemas": {"n": {"type": "integer", "minimum": 2, "maximum": 1}}}});
        assert_eq!(
            found(&schema),
            [
                ("/properties/b".to_owned(), false),
                ("/components/schemas/n".to_owned(), false)
            ]
        );
    }

    #[test]
    fn references_are_followed() {
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/n"},
            "b": {"allOf": [{"$ref": "#/$defs/s"}, {"type": "integer"}]}},
            "$defs": {"n": {"type": "integer", "minimum": 2, "maximum": 1}, "s": {"type": "string"}}});
        assert_eq!(
            found(&schema),
            [
                ("/properties/b".to_owned(), false),
                ("/$defs/n".to_owned(), false)
            ]
        );
    }
}
