//! Arguments that a schema accepts and that read like those of a real call.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};
use toolwarden_schema::{
    ComparisonPolicy, SchemaVerdict, SearchBudget, TimeLimit, Validator, compare,
};

/// How deep examples are built.
const MAX_DEPTH: usize = 12;
/// The most schemas that are visited for one example. A schema that refers to itself several times would
/// have more than memory holds.
const MAX_VISITS: usize = 1_000;
/// The longest text that is made up to satisfy `minLength`.
const MAX_TEXT: u64 = 2_000;
/// How long the schema engine may search for a value.
const SEARCH_TIME: Duration = Duration::from_secs(2);

/// Which members of the outermost object an example has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExampleMembers<'n> {
    /// Those that the schema requires.
    Required,
    /// All that the schema names.
    All,
    /// Those that the schema requires, and this one with everything inside it.
    With(&'n str),
}

/// How far the building of one example is.
#[derive(Default)]
struct ExampleProgress {
    /// How many schemas were visited.
    visits: usize,
    /// The schemas from the outermost one to the current one, by address.
    open: Vec<*const Value>,
}

impl ExampleProgress {
    /// Begins with a schema and says which members its value has; `None` if there were too many schemas.
    /// A schema inside itself has the required members only, as its optional ones would not end.
    fn enter<'n>(
        &mut self,
        schema: &Value,
        members: ExampleMembers<'n>,
    ) -> Option<ExampleMembers<'n>> {
        if self.open.len() > MAX_DEPTH || self.visits >= MAX_VISITS {
            return None;
        }
        self.visits += 1;
        let address = std::ptr::from_ref(schema);
        let is_open = self.open.contains(&address);
        self.open.push(address);
        Some(if is_open {
            ExampleMembers::Required
        } else {
            members
        })
    }

    fn leave(&mut self) {
        self.open.pop();
    }
}

/// Builds arguments for one tool.
pub(super) struct ExampleBuilder<'s> {
    schema: &'s Value,
    validator: Option<Validator>,
}

impl<'s> ExampleBuilder<'s> {
    pub(super) fn new(schema: &'s Value) -> Self {
        Self {
            schema,
            validator: Validator::new(schema).ok(),
        }
    }

    /// Whether the schema accepts arguments.
    pub(super) fn accepts(&self, arguments: &Object) -> bool {
        let value = Value::Object(arguments.clone());
        let validator = self.validator.as_ref();
        validator.is_some_and(|it| it.rejection(&value).is_none())
    }

    /// Arguments with these members. Different variants differ where the schema lets them.
    pub(super) fn arguments(&self, members: ExampleMembers<'_>, variant: usize) -> Option<Object> {
        let built = self.part(
            self.schema,
            members,
            variant,
            &mut ExampleProgress::default(),
        );
        let accepted = built.filter(|it| self.accepts(it));
        accepted.or_else(|| {
            // The plain values do not satisfy the schema. The engine finds one that does.
            let wanted = members == ExampleMembers::Required && variant == 0;
            wanted.then(|| self.found_by_engine()).flatten()
        })
    }

    /// Arguments in which one member has this value.
    pub(super) fn with_member(&self, name: &str, value: &Value) -> Option<Object> {
        let mut arguments = self.arguments(ExampleMembers::Required, 0)?;
        arguments.insert(name.to_owned(), value.clone());
        self.accepts(&arguments).then_some(arguments)
    }

    fn found_by_engine(&self) -> Option<Object> {
        let budget = SearchBudget {
            time: TimeLimit::new(process_time, SEARCH_TIME),
            ..SearchBudget::default()
        };
        let nothing = json!({"not": {}});
        match compare(self.schema, &nothing, ComparisonPolicy::ARGUMENTS, budget) {
            SchemaVerdict::Breaking(witness) => match witness.value {
                Value::Object(arguments) if self.accepts(&arguments) => Some(arguments),
                _ => None,
            },
            SchemaVerdict::Equivalent(_)
            | SchemaVerdict::Compatible { .. }
            | SchemaVerdict::Unknown(_) => None,
        }
    }

    /// The members that the outermost schema or one of `allOf` asks for.
    fn part(
        &self,
        schema: &Value,
        members: ExampleMembers<'_>,
        variant: usize,
        progress: &mut ExampleProgress,
    ) -> Option<Object> {
        let schema = self.resolve(schema)?;
        let members = progress.enter(schema, members)?;
        let object = self.object(schema, members, variant, progress);
        progress.leave();
        object
    }

    fn object(
        &self,
        schema: &Value,
        members: ExampleMembers<'_>,
        variant: usize,
        progress: &mut ExampleProgress,
    ) -> Option<Object> {
        let mut object = Object::new();
        let parts = schema.get("allOf").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            object.extend(self.part(part, members, variant, progress)?);
        }
        let required = schema.get("required").and_then(Value::as_array);
        let required = |name: &str| {
            let mut names = required.into_iter().flatten();
            names.any(|it| it.as_str() == Some(name))
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let (wanted, within) = match members {
                ExampleMembers::Required => (required(name), ExampleMembers::Required),
                ExampleMembers::All => (true, ExampleMembers::All),
                ExampleMembers::With(this) if this == name => (true, ExampleMembers::All),
                ExampleMembers::With(_) => (required(name), ExampleMembers::Required),
            };
            if !wanted {
                continue;
            }
            match self.value(property, name, within, variant, progress) {
                Some(value) => {
                    object.insert(name.clone(), value);
                }
                None if required(name) => return None,
                None => {}
            }
        }
        Some(object)
    }

    fn value(
        &self,
        schema: &Value,
        name: &str,
        members: ExampleMembers<'_>,
        variant: usize,
        progress: &mut ExampleProgress,
    ) -> Option<Value> {
        let schema = self.resolve(schema)?;
        let members = progress.enter(schema, members)?;
        let value = self.resolved_value(schema, name, members, variant, progress);
        progress.leave();
        value
    }

    fn resolved_value(
        &self,
        schema: &Value,
        name: &str,
        members: ExampleMembers<'_>,
        variant: usize,
        progress: &mut ExampleProgress,
    ) -> Option<Value> {
        if schema == &Value::Bool(false) {
            return None;
        }
        if let Some(only) = schema.get("const") {
            return Some(only.clone());
        }
        for key in ["enum", "examples"] {
            let values = schema.get(key).and_then(Value::as_array);
            let values: Vec<&Value> = values.into_iter().flatten().collect();
            let chosen = variant.checked_rem(values.len());
            if let Some(value) = chosen.and_then(|at| values.get(at)) {
                return Some((*value).clone());
            }
        }
        let default = schema.get("default").filter(|it| !is_blank(it));
        if let Some(default) = default.filter(|_| variant == 0) {
            return Some(default.clone());
        }
        for key in ["anyOf", "oneOf"] {
            let choices = schema.get(key).and_then(Value::as_array);
            let mut choices = choices.into_iter().flatten();
            let is_null = |it: &Value| it.get("type") == Some(&json!("null"));
            if let Some(choice) = choices.find(|it| !is_null(it)) {
                return self.value(choice, name, members, variant, progress);
            }
        }
        match declared_type(schema) {
            "object" => {
                let object = self.object(schema, members, variant, progress)?;
                Some(Value::Object(object))
            }
            "array" => self.array(schema, name, members, variant, progress),
            "integer" => Some(number(schema, variant, true)),
            "number" => Some(number(schema, variant, false)),
            "boolean" => Some(json!(variant.is_multiple_of(2))),
            "null" => Some(Value::Null),
            _ => text(schema, name, variant).map(Value::String),
        }
    }

    fn array(
        &self,
        schema: &Value,
        name: &str,
        members: ExampleMembers<'_>,
        variant: usize,
        progress: &mut ExampleProgress,
    ) -> Option<Value> {
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let mut items: Vec<Value> = Vec::new();
        for item in first.into_iter().flatten() {
            items.push(self.value(item, name, members, variant, progress)?);
        }
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1);
        let least = usize::try_from(least.clamp(1, 20)).unwrap_or(1);
        let free = Value::Bool(true);
        let item = schema.get("items").unwrap_or(&free);
        while items.len() < least {
            let at = variant + items.len();
            items.push(self.value(item, singular(name), members, at, progress)?);
        }
        Some(Value::Array(items))
    }

    /// The schema that local references lead to.
    fn resolve<'v>(&'v self, mut schema: &'v Value) -> Option<&'v Value> {
        for _ in 0..MAX_DEPTH {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
                return Some(schema);
            };
            let pointer = reference.strip_prefix('#')?;
            schema = self.schema.pointer(Pointer::from(pointer).as_str())?;
        }
        None
    }
}

/// The time since the first search of this process.
fn process_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// The type of values, the first one that is not null if there are several.
fn declared_type(schema: &Value) -> &str {
    let named = match schema.get("type") {
        Some(Value::String(only)) => Some(only.as_str()),
        Some(Value::Array(several)) => {
            let mut words = several.iter().filter_map(Value::as_str);
            words.find(|it| *it != "null")
        }
        _ => None,
    };
    match named {
        Some(word) => word,
        None if schema.get("properties").is_some() => "object",
        None if schema.get("items").is_some() => "array",
        None if schema.get("minimum").is_some() || schema.get("maximum").is_some() => "number",
        None => "string",
    }
}

/// Whether a default says nothing about a call.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn number(schema: &Value, variant: usize, whole: bool) -> Value {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let step = bound("multipleOf").filter(|it| *it > 0.0).unwrap_or(1.0);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|it| it + step));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|it| it - step));
    let offset = if variant.is_multiple_of(2) { 3.0 } else { 5.0 };
    let mut value = match (least, most) {
        (Some(least), _) if least > offset => least,
        (_, Some(most)) if most < offset => most,
        _ => offset,
    };
    if !variant.is_multiple_of(2)
        && least == Some(value)
        && most.is_none_or(|most| value + step <= most)
    {
        value += step;
    }
    value = (value / step).ceil() * step;
    if whole || value.fract() == 0.0 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the cast saturates, and the validator rejects what does not fit"
        )]
        return json!(value as i64);
    }
    json!(value)
}

/// A text by format, name and length; `None` if a pattern decides, which the schema engine solves.
fn text(schema: &Value, name: &str, variant: usize) -> Option<String> {
    if schema.get("pattern").is_some() {
        return None;
    }
    let format = schema.get("format").and_then(Value::as_str);
    let pick = |pair: [&str; 2]| pair.get(variant % 2).copied().unwrap_or("").to_owned();
    let mut text = pick(by_format(format.unwrap_or_default()).unwrap_or_else(|| by_name(name)));
    let length = |key: &str| schema.get(key).and_then(Value::as_u64);
    let least = length("minLength").unwrap_or(0).min(MAX_TEXT);
    while u64::try_from(text.chars().count()).is_ok_and(|it| it < least) {
        text.push('x');
    }
    let most = length("maxLength").unwrap_or(u64::MAX);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    Some(text.chars().take(most).collect())
}

fn by_format(format: &str) -> Option<[&'static str; 2]> {
    Some(match format {
        "date" => ["2026-03-14", "2026-03-15"],
        "date-time" => ["2026-03-14T09:30:00Z", "2026-03-15T09:30:00Z"],
        "time" => ["09:30:00Z", "10:30:00Z"],
        "duration" => ["PT1H", "PT2H"],
        "email" | "idn-email" => ["ada@example.com", "grace@example.com"],
        "uri" | "url" | "iri" | "uri-reference" => {
            ["https://example.com/one", "https://example.com/two"]
        }
        "hostname" => ["one.example.com", "two.example.com"],
        "ipv4" => ["192.0.2.1", "192.0.2.2"],
        "ipv6" => ["2001:db8::1", "2001:db8::2"],
        "uuid" => [
            "7b1f3c52-6f0e-4d0f-9a55-0c1b8a3d2e41",
            "0d9a6c1e-52b7-4f3a-8e60-91c7f4b2a3d8",
        ],
        _ => return None,
    })
}

/// Words in the names of arguments, and what a user would give for them.
const BY_NAME: [(&str, [&str; 2]); 24] = [
    ("email", ["ada@example.com", "grace@example.com"]),
    (
        "url",
        ["https://example.com/one", "https://example.com/two"],
    ),
    (
        "uri",
        ["https://example.com/one", "https://example.com/two"],
    ),
    ("path", ["docs/report.txt", "docs/notes.txt"]),
    ("file", ["report.txt", "notes.txt"]),
    ("city", ["Shanghai", "Berlin"]),
    ("location", ["Shanghai", "Berlin"]),
    ("country", ["CN", "DE"]),
    ("timezone", ["Asia/Shanghai", "Europe/Berlin"]),
    ("language", ["en", "zh"]),
    ("currency", ["CNY", "EUR"]),
    ("date", ["2026-03-14", "2026-03-15"]),
    ("time", ["09:30", "10:30"]),
    ("phone", ["+1 555 0100", "+1 555 0101"]),
    ("repo", ["example/alpha", "example/beta"]),
    ("branch", ["main", "develop"]),
    ("query", ["quarterly report", "meeting notes"]),
    ("search", ["quarterly report", "meeting notes"]),
    ("title", ["Quarterly report", "Meeting notes"]),
    ("subject", ["Quarterly report", "Meeting notes"]),
    ("message", ["The report is ready.", "The notes are ready."]),
    ("content", ["The report is ready.", "The notes are ready."]),
    ("name", ["Ada Lovelace", "Grace Hopper"]),
    ("id", ["A-1001", "A-1002"]),
];

fn by_name(name: &str) -> [&'static str; 2] {
    let name = name.to_ascii_lowercase();
    let is_about = |word: &str| match word {
        // Too short to look for inside other words.
        "id" => name == "id" || name.ends_with("_id") || name.ends_with("-id"),
        word => name.contains(word),
    };
    let found = BY_NAME.iter().find(|(word, _)| is_about(word));
    found.map_or(["alpha", "beta"], |(_, pair)| *pair)
}

fn singular(name: &str) -> &str {
    name.strip_suffix('s').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_that_refer_to_themselves_have_small_examples() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let references: Object = names
            .iter()
            .map(|it| ((*it).to_owned(), json!({"$ref": "#"})))
            .collect();
        let all_of = vec![json!({"$ref": "#/$defs/node"}); 6];
        let schemas = [
            json!({"type": "object", "properties": references}),
            // No value satisfies this one.
            json!({"type": "object", "properties": references, "required": names}),
            json!({
                "type": "object",
                "properties": {"tree": {"$ref": "#/$defs/node"}},
                "$defs": {"node": {"type": "object", "properties": {
                    "left": {"allOf": all_of, "type": "object"},
                    "many": {"type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 20},
                }}}
            }),
        ];
        for schema in &schemas {
            let builder = ExampleBuilder::new(schema);
            for members in [ExampleMembers::All, ExampleMembers::With("a")] {
                let example = builder.arguments(members, 0);
                assert!(example.is_none_or(|it| builder.accepts(&it)), "{schema}");
            }
        }
        let [first, ..] = &schemas;
        let example = ExampleBuilder::new(first).arguments(ExampleMembers::All, 0);
        let inner: Object = names
            .iter()
            .map(|it| ((*it).to_owned(), json!({})))
            .collect();
        assert_eq!(example, Some(inner));
    }

    #[test]
    fn a_tree_has_an_example_with_one_level() {
        let schema = json!({
            "type": "object",
            "properties": {
                "label": {"const": "x"},
                "children": {"type": "array", "items": {"$ref": "#"}},
            },
            "required": ["label"]
        });
        let example = ExampleBuilder::new(&schema).arguments(ExampleMembers::All, 0);
        let expected = json!({"label": "x", "children": [{"label": "x"}]});
        assert_eq!(example.map(Value::Object), Some(expected));
    }
}
