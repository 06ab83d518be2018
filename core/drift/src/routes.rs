//! Changes of a call's destination and of the credentials that it must present.

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer, to_canonical_string};

use crate::change::{Change, ChangeClass};
use crate::facet::ObservedDefinition;

/// The rule of changes that state the same route in other words.
pub(crate) const SAME_ROUTE: &str = "same-route";

/// Where a document says which security schemes there are. Some documents have them directly in
/// `components`.
const SCHEMES: [&str; 3] = [
    "/components/securitySchemes",
    "/securitySchemes",
    "/securityDefinitions",
];

/// Where a document says where calls go and what they present.
const ROUTES: [&str; 5] = [
    "servers",
    "security",
    "components",
    "securitySchemes",
    "securityDefinitions",
];

/// Marks the changes of a document that only state the same route in other words: another name of a
/// security scheme, or a slash at the end of a server's URL.
pub(crate) fn mark_same_route(
    changes: &mut [Change],
    old: &ObservedDefinition<'_>,
    new: &ObservedDefinition<'_>,
) {
    let place = Pointer::of(["extensions/raw", "document"]);
    let (Some(before), Some(after)) = (place.find(old.definition), place.find(new.definition))
    else {
        return;
    };
    let only_schemes = bare_schemes(before).is_some() && bare_schemes(after).is_some();
    let same_other_components = other_components(before) == other_components(after);
    let is_route = |change: &&mut Change| {
        // A name that says more than a name is text.
        if change.class != ChangeClass::Behavioural {
            return false;
        }
        let segments: Vec<String> = change.pointer.segments().collect();
        match segments.as_slice() {
            [raw, document, key, rest @ ..]
                if raw == "extensions/raw" && document == "document" =>
            {
                // Other components are not compared as a route.
                let first = rest.first().map(String::as_str);
                let is_compared = key != "components"
                    || first == Some("securitySchemes")
                    || (first.is_none() && same_other_components)
                    || only_schemes;
                ROUTES.contains(&key.as_str()) && is_compared
            }
            _ => false,
        }
    };
    let mut routes = changes.iter_mut().filter(is_route).peekable();
    if routes.peek().is_none() || route_content(before) != route_content(after) {
        return;
    }
    for change in routes {
        change.rule = SAME_ROUTE;
        change.class = ChangeClass::Info;
        change.message.push_str(": the same route in other words");
    }
}

/// What a document says about its calls, without the names of its security schemes.
fn route_content(document: &Value) -> Vec<String> {
    let schemes = security_schemes(document);
    let mut said = Vec::new();
    for stated in SCHEMES.iter().filter_map(|place| document.pointer(place)) {
        match stated {
            Value::Object(schemes) => said.extend(schemes.values().map(to_canonical_string)),
            other => said.push(to_canonical_string(other)),
        }
    }
    let bare = bare_schemes(document).into_iter().flatten();
    said.extend(bare.map(|(_, scheme)| to_canonical_string(scheme)));
    said.sort();
    said.extend(server_content(document.get("servers")));
    said.extend(security_content(schemes, document.get("security")));
    said
}

/// The security schemes of a document by name. Not every scheme has a `type`: it may be a reference, or
/// say its type by the name of its only member (A2A 1.0).
fn security_schemes(document: &Value) -> Option<&Object> {
    let stated = SCHEMES.iter().filter_map(|place| document.pointer(place));
    let mut stated = stated.filter_map(Value::as_object);
    stated
        .find(|schemes| !schemes.is_empty())
        .or_else(|| bare_schemes(document))
}

/// The members of `components`, if all of them are security schemes.
fn bare_schemes(document: &Value) -> Option<&Object> {
    let components = document.get("components")?.as_object()?;
    let is_scheme = |it: &Value| it.get("type").is_some_and(Value::is_string);
    let is_bare = !components.is_empty() && components.values().all(is_scheme);
    is_bare.then_some(components)
}

/// The components of a document without its security schemes.
fn other_components(document: &Value) -> Value {
    let components = document.get("components").cloned();
    let mut components = components.unwrap_or_else(|| Value::Object(Object::new()));
    if let Value::Object(members) = &mut components {
        members.shift_remove("securitySchemes");
    }
    components
}

fn scheme_content(schemes: Option<&Object>, name: &str) -> String {
    match schemes.and_then(|schemes| schemes.get(name)) {
        Some(scheme) => to_canonical_string(scheme),
        None => name.to_owned(),
    }
}

/// A list of servers, without the slash at the end of a URL.
fn server_content(servers: Option<&Value>) -> Vec<String> {
    let servers = servers.and_then(Value::as_array).into_iter().flatten();
    let said = servers.map(|server| {
        let mut server = server.clone();
        if let Some(Value::String(url)) = server.get_mut("url") {
            url.truncate(url.trim_end_matches('/').len());
        }
        format!("server {}", to_canonical_string(&server))
    });
    said.collect()
}

/// A list of security requirements, with the content of each scheme for its name.
fn security_content(schemes: Option<&Object>, required: Option<&Value>) -> Vec<String> {
    let required = required.and_then(Value::as_array).into_iter().flatten();
    let said = required.map(|alternative| {
        let names = alternative.as_object().into_iter().flatten();
        // Two names may stand for the same content, with other scopes.
        let mut written: Vec<String> = names
            .map(|(name, scopes)| {
                let content = scheme_content(schemes, name);
                format!("{content} {}", to_canonical_string(scopes))
            })
            .collect();
        written.sort();
        format!("security {}", written.join(" and "))
    });
    said.collect()
}

/// Where the calls of one operation go and what they present.
#[derive(PartialEq, Eq)]
struct OperationRoute {
    servers: Vec<String>,
    security: Vec<String>,
}

impl OperationRoute {
    /// The route of an operation: its own, or else that of its path, or else that of the document.
    fn of(document: &Value, path: &str, method: &str) -> Option<Self> {
        let item = document.get("paths")?.get(path)?;
        let operation = item.get(method)?;
        let servers = [operation, item, document]
            .into_iter()
            .find_map(|holder| holder.get("servers"));
        let security = [operation, document]
            .into_iter()
            .find_map(|holder| holder.get("security"));
        let schemes = security_schemes(document);
        let mut security = security_content(schemes, security);
        // A caller may choose any of the alternatives.
        security.sort();
        Some(Self {
            servers: server_content(servers),
            security,
        })
    }

    fn is_same(&self, other: &Self, member: &str) -> bool {
        match member {
            "servers" => self.servers == other.servers,
            _ => self.security == other.security,
        }
    }
}

/// Marks the changes of a tool, or of the document it belongs to, that only state the same route of an
/// operation in other words.
pub(crate) fn mark_same_operation(
    changes: &mut [Change],
    tool: &str,
    old: &[ObservedDefinition<'_>],
    new: &[ObservedDefinition<'_>],
) {
    if !changes.iter().any(|it| operation_of(it).is_some()) {
        return;
    }
    let documents = (document_of(old), document_of(new));
    let find = |list: &[ObservedDefinition<'_>]| -> Option<Value> {
        let tool = list.iter().find(|it| it.name == tool)?;
        tool.definition.get("extensions/openapi").cloned()
    };
    let sides = (find(old), find(new));
    for change in changes {
        let Some((operation, member)) = operation_of(change) else {
            continue;
        };
        if is_same_route(&operation, &member, documents, &sides) {
            change.rule = SAME_ROUTE;
            change.class = ChangeClass::Info;
            change.message.push_str(": the same route in other words");
        }
    }
}

/// The document that the operations of a list belong to, if there is exactly one.
fn document_of<'d>(list: &[ObservedDefinition<'d>]) -> Option<&'d Value> {
    let place = Pointer::of(["extensions/raw", "document"]);
    let documents = list.iter().filter_map(|it| place.find(it.definition));
    let mut documents = documents.filter(|it| it.get("paths").is_some());
    let first = documents.next()?;
    documents.next().is_none().then_some(first)
}

/// The operation that a change of route is about.
enum ChangedOperation {
    /// The tool itself.
    Tool,
    /// One operation of a document, or all operations of a path.
    Document {
        path: String,
        method: Option<String>,
    },
}

/// The operation that a change of servers or credentials is about, and which of the two it is.
fn operation_of(change: &Change) -> Option<(ChangedOperation, String)> {
    // Other classes are not about the route alone.
    if !matches!(change.class, ChangeClass::Trust | ChangeClass::Behavioural)
        || !change.evidence.reasons.is_empty()
    {
        return None;
    }
    let segments: Vec<String> = change.pointer.segments().collect();
    let is_route = |member: &str| matches!(member, "servers" | "security");
    match segments.as_slice() {
        [holder, member, ..] if holder == "extensions/openapi" && is_route(member) => {
            Some((ChangedOperation::Tool, member.clone()))
        }
        [raw, document, paths, path, rest @ ..]
            if raw == "extensions/raw" && document == "document" && paths == "paths" =>
        {
            let (method, member) = match rest {
                [member, ..] if member == "servers" => (None, member),
                [method, member, ..] if is_route(member) => (Some(method.clone()), member),
                _ => return None,
            };
            let path = path.clone();
            Some((ChangedOperation::Document { path, method }, member.clone()))
        }
        _ => None,
    }
}

fn is_same_route(
    operation: &ChangedOperation,
    member: &str,
    documents: (Option<&Value>, Option<&Value>),
    tools: &(Option<Value>, Option<Value>),
) -> bool {
    let (Some(old), Some(new)) = documents else {
        // Without the document, only the operation's own servers are known.
        let servers = |tool: &Option<Value>| {
            let servers = tool.as_ref()?.get("servers")?;
            Some(server_content(Some(servers)))
        };
        let before = servers(&tools.0);
        return member == "servers" && before.is_some() && before == servers(&tools.1);
    };
    let is_same = |path: (&str, &str), method: (&str, &str)| {
        let before = OperationRoute::of(old, path.0, method.0);
        let after = OperationRoute::of(new, path.1, method.1);
        matches!((before, after), (Some(before), Some(after)) if before.is_same(&after, member))
    };
    match operation {
        ChangedOperation::Tool => {
            let text = |tool: &Option<Value>, key: &str| -> Option<String> {
                Some(tool.as_ref()?.get(key)?.as_str()?.to_owned())
            };
            let route = |tool: &Option<Value>| Some((text(tool, "path")?, text(tool, "method")?));
            let (Some(before), Some(after)) = (route(&tools.0), route(&tools.1)) else {
                return false;
            };
            is_same((&before.0, &after.0), (&before.1, &after.1))
        }
        ChangedOperation::Document { path, method } => {
            let methods: Vec<String> = match method {
                Some(method) => vec![method.clone()],
                None => {
                    let item = new.get("paths").and_then(|it| it.get(path));
                    // The operations of a path in another place are not known.
                    if item.is_some_and(|it| it.get("$ref").is_some()) {
                        return false;
                    }
                    let members = item.and_then(Value::as_object).into_iter().flatten();
                    let operations =
                        members.filter(|(key, it)| it.is_object() && !is_path_member(key));
                    operations.map(|(method, _)| method.clone()).collect()
                }
            };
            let mut methods = methods.iter();
            methods.len() > 0 && methods.all(|it| is_same((path, path), (it, it)))
        }
    }
}

/// Whether a member of a path is not an operation. Any other member may be one, also without the
/// responses that not every version of the specification demands.
fn is_path_member(key: &str) -> bool {
    let known = ["description", "parameters", "servers", "summary"];
    known.contains(&key) || key.starts_with("x-")
}

/// The effect on calls of a change at this place, if the place concerns their route. No model reads it
/// and no schema describes it, yet the same arguments have a different effect.
pub(crate) fn route_change(pointer: &Pointer) -> Option<&'static str> {
    let segments: Vec<String> = pointer.segments().collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["extensions/openapi", "method", ..] => Some("calls use another method"),
        ["extensions/openapi", "path", ..] => Some("calls go to another path"),
        ["extensions/openapi", "servers", ..]
        | ["extensions/raw", "document", "paths", _, "servers", ..] => {
            Some("calls go to another server")
        }
        ["extensions/raw", "document", "paths", _, _, "callbacks", ..]
        | ["extensions/raw", "document", "webhooks", ..] => Some("results go to another address"),
        [
            "extensions/raw",
            "document",
            "paths",
            _,
            _,
            "requestBody",
            "required",
        ] => Some("calls need a body, or need none, unlike before"),
        ["extensions/openapi", "arguments", _, "in" | "name"] => {
            Some("an argument is sent in another place")
        }
        [
            "extensions/openapi" | "extensions/a2a-skill",
            "security" | "securitySchemes" | "securityRequirements",
            ..,
        ]
        | [
            "security" | "securitySchemes" | "securityRequirements" | "security_requirements",
            ..,
        ] => Some("calls present other credentials"),
        _ => None,
    }
}
