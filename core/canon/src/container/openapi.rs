//! One tool per operation of an OpenAPI document.

mod shared_schemas;
mod unread_part;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::{AbsentParts, Format, Tool};

use shared_schemas::SharedSchemas;
use unread_part::UnreadParts;
pub(crate) use unread_part::{lists_unread_parts, unread_parts};

pub use unread_part::UnreadPart;

const METHODS: &[&str] = &[
    "get", "put", "post", "delete", "options", "head", "patch", "trace", "query",
];

/// Header parameters OpenAPI says to ignore: they belong to the transport.
const TRANSPORT_HEADERS: &[&str] = &["accept", "content-type", "authorization"];

/// An operation as a tool.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) pointer: Pointer,
    pub(super) definition: Value,
    pub(super) tool: Tool,
}

/// Every operation of a document, in document order.
pub(super) fn operations(document: &Object) -> Vec<Operation> {
    let mut operations = Vec::new();
    let paths = document.get("paths").and_then(Value::as_object);
    for (path, item) in paths.into_iter().flatten() {
        // Keys that start with `x-` are extensions and may hold anything.
        if path.starts_with("x-") {
            continue;
        }
        let pointer = Pointer::of(["paths", path]);
        let Some(target) = SharedSchemas::of(document).follow(item) else {
            operations.push(unread_path(pointer, item));
            continue;
        };
        // Operations may stand beside a reference to others.
        let beside = item.as_object().filter(|own| !std::ptr::eq(*own, target));
        let own = beside.into_iter().flatten();
        let referred = target
            .iter()
            .filter(|(method, _)| beside.is_none_or(|own| !own.contains_key(method.as_str())));
        let shared = beside.and_then(|own| own.get("parameters"));
        let shared = shared.or_else(|| target.get("parameters"));
        let shared = shared.and_then(Value::as_array);
        for (method, operation) in own.chain(referred) {
            let (true, Value::Object(members)) = (METHODS.contains(&method.as_str()), operation)
            else {
                continue;
            };
            operations.push(Operation {
                pointer: pointer.child(method),
                definition: operation.clone(),
                tool: tool(document, Some((method, path)), shared, members),
            });
        }
    }
    operations
}

/// A path whose operations cannot be read, as a tool without a name: none of them is dropped in silence.
fn unread_path(pointer: Pointer, item: &Value) -> Operation {
    let mut tool = Tool::new(Format::Openapi);
    tool.absent = AbsentParts {
        name: true,
        description: true,
        inputs: true,
    };
    let mut unread = UnreadParts::default();
    unread.push(Pointer::root(), UnreadPart::of(item));
    let mut extension = Object::new();
    unread.write_to(&mut extension);
    tool.extensions.insert(Format::Openapi, extension);
    Operation {
        pointer,
        definition: item.clone(),
        tool,
    }
}

/// A standalone operation, without the document it came from.
pub(crate) fn standalone_operation(operation: &Object) -> Tool {
    tool(&Object::new(), None, None, operation)
}

fn tool(
    document: &Object,
    route: Option<(&String, &String)>,
    shared: Option<&Vec<Value>>,
    operation: &Object,
) -> Tool {
    let text = |key: &str| {
        operation
            .get(key)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let schemas = SharedSchemas::of(document);
    let mut unread = UnreadParts::default();
    let mut arguments = Arguments::default();
    for parameter in parameters(&schemas, shared, operation, &mut unread) {
        arguments.add_parameter(&schemas, parameter);
    }
    arguments.add_body(&schemas, operation, &mut unread);

    let mut tool = Tool::new(Format::Openapi);
    let operation_id = text("operationId");
    let (summary, description) = (text("summary"), text("description"));
    tool.absent = AbsentParts {
        name: operation_id.is_none(),
        description: summary.is_none() && description.is_none(),
        inputs: false,
    };
    tool.name = operation_id
        .or_else(|| route.map(|(method, path)| slug(method, path)))
        .unwrap_or_default();
    tool.title = summary.clone().filter(|_| description.is_some());
    tool.description = description.or(summary).unwrap_or_default();
    let outputs = result_schema(&schemas, operation, &mut unread);
    tool.outputs = schemas.complete(outputs.unwrap_or_default());
    let (inputs, places) = arguments.finish();
    tool.inputs = schemas.complete(inputs);
    let mut extension = Object::new();
    if let Some((method, path)) = route {
        extension.insert("method".to_owned(), json!(method));
        extension.insert("path".to_owned(), json!(path));
    }
    extension.insert("arguments".to_owned(), Value::Object(places));
    unread.write_to(&mut extension);
    for key in ["tags", "security", "deprecated", "servers", "externalDocs"] {
        if let Some(value) = operation.get(key) {
            extension.insert(key.to_owned(), value.clone());
        }
    }
    tool.extensions.insert(Format::Openapi, extension);
    tool
}

/// The operation's own parameters, then those of its path that it does not override.
fn parameters<'d>(
    schemas: &SharedSchemas<'d>,
    shared: Option<&'d Vec<Value>>,
    operation: &'d Object,
    unread: &mut UnreadParts,
) -> Vec<&'d Object> {
    let own = operation.get("parameters").and_then(Value::as_array);
    let place = Pointer::of(["parameters"]);
    let own = own.into_iter().flatten().enumerate();
    let own = own.map(|(index, parameter)| (place.index(index), parameter));
    // The parameters of a path stand outside of the operation.
    let shared = shared.into_iter().flatten();
    let shared = shared.map(|parameter| (Pointer::root(), parameter));
    let mut seen = BTreeSet::new();
    let mut parameters = Vec::new();
    for (place, part) in own.chain(shared) {
        let Some(parameter) = schemas.follow(part) else {
            unread.push(place, UnreadPart::of(part));
            continue;
        };
        let identity = |key: &str| {
            parameter
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        if seen.insert((identity("in"), identity("name"))) {
            parameters.push(parameter);
        }
    }
    parameters
}

/// The schema of the first successful response.
fn result_schema(
    schemas: &SharedSchemas<'_>,
    operation: &Object,
    unread: &mut UnreadParts,
) -> Option<Object> {
    let responses = operation.get("responses")?.as_object()?;
    let successes = responses
        .iter()
        .filter(|(status, _)| status.starts_with('2'));
    let schema = successes.into_iter().find_map(|(status, part)| {
        let Some(response) = schemas.follow(part) else {
            unread.push(Pointer::of(["responses", status]), UnreadPart::of(part));
            return None;
        };
        // Only OpenAPI 2 has the schema in the response itself.
        let inline = response
            .get("schema")
            .map(|schema| schemas.convert_v2(schema));
        let content = || Some(schemas.convert(content_schema(response)?.1.get("schema")?));
        inline.or_else(content)
    })?;
    match schema {
        Value::Object(schema) => Some(schema),
        _ => None,
    }
}

/// The media type of a body and its description, JSON before all others.
fn content_schema(holder: &Object) -> Option<(&String, &Value)> {
    let content = holder.get("content")?.as_object()?;
    content
        .iter()
        .find(|(media, _)| media.contains("json"))
        .or_else(|| content.iter().next())
}

fn slug(method: &str, path: &str) -> String {
    let words = path
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    std::iter::once(method)
        .chain(words)
        .collect::<Vec<_>>()
        .join("_")
}

/// The arguments of an operation, gathered from all the places HTTP has for them.
#[derive(Default)]
struct Arguments {
    properties: Object,
    required: Vec<Value>,
    /// The location of each argument in the HTTP request.
    places: Object,
}

impl Arguments {
    fn add(&mut self, name: &str, place: &str, schema: Value, required: bool) {
        let taken = self.properties.contains_key(name);
        let mut argument = name.to_owned();
        while self.properties.contains_key(&argument) {
            argument = format!("{place}_{argument}");
        }
        if required {
            self.required.push(Value::from(argument.clone()));
        }
        let mut travels = Object::new();
        travels.insert("in".to_owned(), json!(place));
        if taken {
            travels.insert("name".to_owned(), json!(name));
        }
        self.places.insert(argument.clone(), Value::Object(travels));
        self.properties.insert(argument, schema);
    }

    fn add_parameter(&mut self, schemas: &SharedSchemas<'_>, parameter: &Object) {
        let text = |key: &str| {
            parameter
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (name, place) = (text("name"), text("in"));
        if place == "header" && TRANSPORT_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return;
        }
        let flag = parameter.get("required") == Some(&Value::Bool(true));
        if place == "body" {
            let schema = parameter
                .get("schema")
                .map_or_else(|| json!({}), |schema| schemas.convert(schema));
            self.add_body_schema(schemas, schema, flag);
            return;
        }
        let inner = parameter
            .get("schema")
            .or_else(|| content_schema(parameter)?.1.get("schema"));
        let mut schema = inner.map_or_else(
            || schemas.inline_parameter(parameter),
            |schema| schemas.convert(schema),
        );
        if let (Value::Object(schema), Some(description)) =
            (&mut schema, parameter.get("description"))
        {
            schema
                .entry("description")
                .or_insert_with(|| description.clone());
        }
        self.add(name, place, schema, flag || place == "path");
    }

    fn add_body(
        &mut self,
        schemas: &SharedSchemas<'_>,
        operation: &Object,
        unread: &mut UnreadParts,
    ) {
        let Some(part) = operation.get("requestBody") else {
            return;
        };
        let place = Pointer::of(["requestBody"]);
        let Some(body) = schemas.follow(part) else {
            unread.push(place, UnreadPart::of(part));
            return;
        };
        let required = body.get("required") == Some(&Value::Bool(true));
        let Some((media, content)) = content_schema(body) else {
            return;
        };
        let convert = |content: &Value| {
            let schema = content.get("schema");
            schema.map_or_else(|| json!({}), |schema| schemas.convert(schema))
        };
        let schema = convert(content);
        let others = body.get("content").and_then(Value::as_object);
        let others = others.into_iter().flatten();
        let mut same = Vec::new();
        for (media_type, content) in others.filter(|(other, _)| *other != media) {
            if convert(content) == schema {
                same.push(Value::from(media_type.as_str()));
                continue;
            }
            // A body behind a reference stands outside of the operation.
            let is_own = part.get("$ref").is_none();
            let place = match is_own {
                true => place.child("content").child(media_type),
                false => place.clone(),
            };
            let media_type = media_type.clone();
            unread.push(place, UnreadPart::OtherMediaType { media_type });
        }
        self.add_body_schema(schemas, schema, required);
        self.add_media_types(media, same);
    }

    /// Notes how the body travels, unless it can only be JSON.
    fn add_media_types(&mut self, media: &str, same: Vec<Value>) {
        let mut body = Object::new();
        if media != "application/json" || !same.is_empty() {
            body.insert("media_type".to_owned(), json!(media));
        }
        if !same.is_empty() {
            body.insert("other_media_types".to_owned(), Value::Array(same));
        }
        if !body.is_empty() {
            self.places.insert("$body".to_owned(), Value::Object(body));
        }
    }

    /// Turns the properties of a body into arguments if that keeps the meaning, and otherwise keeps the
    /// body as one argument.
    fn add_body_schema(&mut self, schemas: &SharedSchemas<'_>, schema: Value, required: bool) {
        let target = schemas.target_of(&schema);
        let Some(properties) = inlinable_properties(&target, required).filter(|properties| {
            properties
                .keys()
                .all(|name| !self.properties.contains_key(name))
        }) else {
            self.add("body", "body", schema, required);
            return;
        };
        let needed = target.get("required").and_then(Value::as_array);
        for (name, property) in properties {
            let needed =
                needed.is_some_and(|needed| needed.iter().any(|word| word.as_str() == Some(name)));
            self.add(name, "body", property.clone(), needed);
        }
    }

    fn finish(self) -> (Object, Object) {
        let mut inputs = Object::new();
        inputs.insert("type".to_owned(), json!("object"));
        inputs.insert("properties".to_owned(), Value::Object(self.properties));
        if !self.required.is_empty() {
            inputs.insert("required".to_owned(), Value::Array(self.required));
        }
        (inputs, self.places)
    }
}

/// The properties of a body that is a plain object and need not be given as a whole.
fn inlinable_properties(schema: &Value, required: bool) -> Option<&Object> {
    const PLAIN: &[&str] = &[
        "type",
        "properties",
        "required",
        "title",
        "description",
        "examples",
        "default",
    ];
    let members = schema.as_object()?;
    let plain = members.keys().all(|key| PLAIN.contains(&key.as_str()));
    let optional = members
        .get("required")
        .is_none_or(|names| names.as_array().is_some_and(Vec::is_empty));
    let names = members.get("required").and_then(Value::as_array);
    let known = |name: &Value| {
        name.as_str()
            .is_some_and(|name| schema["properties"].get(name).is_some())
    };
    let all_known = names.is_none_or(|names| names.iter().all(known));
    (plain && all_known && (required || optional))
        .then(|| members.get("properties")?.as_object())
        .flatten()
}
