use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolwarden_model::Tool;
use toolwarden_model::json::Object;

use super::CallExample;
use super::example_value::{ExampleBuilder, ExampleMembers};

/// The most cases about enums, and about nested arguments, of one tool.
const MAX_PER_KIND: usize = 3;

/// The number of different recorded calls that a tool's cases use.
const EXAMPLE_CALLS: usize = 2;

/// A case before it is written.
#[derive(Debug)]
pub(super) struct DraftCase {
    pub(super) name: String,
    /// What the case is about, one line each.
    pub(super) comments: Vec<String>,
    pub(super) prompt: String,
    pub(super) expects_call: bool,
    /// The calls, and the only correct arguments if they are known.
    pub(super) calls: Vec<(String, Option<Value>)>,
    pub(super) turns: Vec<DraftTurn>,
}

/// A later turn of a case.
#[derive(Debug)]
pub(super) struct DraftTurn {
    pub(super) comment: String,
    pub(super) results: Object,
    pub(super) expects_call: bool,
    pub(super) calls: Vec<(String, Option<Value>)>,
}

/// A tool with the arguments of a typical call.
struct DraftTool<'t> {
    tool: &'t Tool,
    schema: Value,
    typical: Option<Object>,
    /// Other arguments, for a second call in the same reply.
    second: Option<Object>,
    is_recorded: bool,
}

/// The cases for tools, in the order of the tools.
pub(super) fn draft_cases(tools: &[&Tool], calls: &[CallExample]) -> Vec<DraftCase> {
    let tools: Vec<DraftTool<'_>> = tools.iter().map(|it| DraftTool::new(it, calls)).collect();
    let mut cases: Vec<DraftCase> = Vec::new();
    for tool in &tools {
        cases.extend(tool.cases());
    }
    for pair in tools.windows(2) {
        if let [one, other] = pair {
            cases.push(two_tools(one, other));
            cases.push(in_sequence(one, other));
        }
    }
    if let [only] = tools.as_slice() {
        cases.push(answer_from_result(only));
    }
    let mut names = BTreeSet::new();
    cases.retain(|it| names.insert(it.name.clone()));
    cases
}

impl<'t> DraftTool<'t> {
    fn new(tool: &'t Tool, calls: &[CallExample]) -> Self {
        let schema = Value::Object(tool.inputs.clone());
        let builder = ExampleBuilder::new(&schema);
        let mut recorded: Vec<&Object> = Vec::new();
        for call in calls.iter().filter(|it| it.tool == tool.name) {
            if recorded.len() == EXAMPLE_CALLS {
                break;
            }
            if builder.accepts(&call.arguments) && !recorded.contains(&&call.arguments) {
                recorded.push(&call.arguments);
            }
        }
        let documented = tool.examples.iter().filter_map(Value::as_object);
        let documented = documented.filter(|it| builder.accepts(it));
        let recorded_calls = recorded.iter().map(|it| (*it).clone());
        let known: Vec<Object> = recorded_calls.chain(documented.cloned()).collect();
        let typical = known.first().cloned();
        let typical = typical.or_else(|| builder.arguments(ExampleMembers::Required, 0));
        let others = known.get(1).cloned();
        let others = others
            .or_else(|| builder.arguments(ExampleMembers::Required, 1))
            .or_else(|| builder.arguments(ExampleMembers::All, 1));
        Self {
            tool,
            second: others.filter(|it| Some(it) != typical.as_ref()),
            is_recorded: !recorded.is_empty(),
            typical,
            schema,
        }
    }

    fn cases(&self) -> Vec<DraftCase> {
        let name = &self.tool.name;
        let builder = ExampleBuilder::new(&self.schema);
        let origin = match (&self.typical, self.is_recorded) {
            (Some(_), true) => {
                "The arguments are those of a recorded call; review them before you share this file."
            }
            (Some(_), false) => "The arguments are examples that the schema accepts.",
            (None, _) => {
                "No example was found that the schema accepts: add the arguments that are correct."
            }
        };
        let mut cases = vec![self.case(
            "typical",
            &[
                &format!("`{name}`: a typical call with what the tool requires."),
                origin,
            ],
            self.typical.as_ref(),
        )];
        let mut seen: Vec<Object> = self.typical.iter().cloned().collect();
        if let Some(all) = builder.arguments(ExampleMembers::All, 0)
            && !seen.contains(&all)
        {
            let about =
                format!("`{name}`: every argument that the schema names, optional ones included.");
            cases.push(self.case("optional", &[&about], Some(&all)));
            seen.push(all);
        }
        let properties = self
            .tool
            .inputs
            .get("properties")
            .and_then(Value::as_object);
        let properties: Vec<(&String, &Value)> = properties.into_iter().flatten().collect();
        let mut enums = 0;
        for (argument, schema) in &properties {
            let values = schema.get("enum").and_then(Value::as_array);
            let Some(last) = values
                .and_then(|it| it.last())
                .filter(|_| enums < MAX_PER_KIND)
            else {
                continue;
            };
            let Some(arguments) = builder
                .with_member(argument, last)
                .filter(|it| !seen.contains(it))
            else {
                continue;
            };
            enums += 1;
            let about = format!(
                "`{name}`: `{argument}` accepts only certain words; the model has to pick this one."
            );
            cases.push(self.case(&format!("enum-{argument}"), &[&about], Some(&arguments)));
            seen.push(arguments);
        }
        let mut nested = 0;
        for (argument, schema) in &properties {
            if nested == MAX_PER_KIND || !is_nested(schema) {
                continue;
            }
            let arguments = builder.arguments(ExampleMembers::With(argument), 0);
            let Some(arguments) = arguments.filter(|it| !seen.contains(it)) else {
                continue;
            };
            nested += 1;
            let about = format!(
                "`{name}`: `{argument}` has members of its own; models flatten or stringify such arguments."
            );
            cases.push(self.case(&format!("nested-{argument}"), &[&about], Some(&arguments)));
            seen.push(arguments);
        }
        if let (Some(one), Some(other)) = (&self.typical, &self.second) {
            cases.push(DraftCase {
                name: format!("{name}/parallel"),
                comments: vec![format!(
                    "`{name}`: two calls in one reply, which must not be merged or lost."
                )],
                prompt: format!(
                    "Do both of these in one turn, with two calls at once: first, {}; second, {}.",
                    lower(&ask(name, Some(one))),
                    lower(&ask(name, Some(other)))
                ),
                expects_call: true,
                calls: vec![self.call(Some(one)), self.call(Some(other))],
                turns: Vec::new(),
            });
        }
        cases.push(DraftCase {
            name: format!("{name}/refusal"),
            comments: vec![format!(
                "`{name}`: the user asks about the tool and forbids calls; any call is a fault."
            )],
            prompt: format!(
                "Do not call any tool. Explain in one sentence what {} is for.",
                quoted(name)
            ),
            expects_call: false,
            calls: Vec::new(),
            turns: Vec::new(),
        });
        cases
    }

    fn case(&self, kind: &str, comments: &[&str], arguments: Option<&Object>) -> DraftCase {
        let comments = comments.iter().map(|it| (*it).to_owned());
        DraftCase {
            name: format!("{}/{kind}", self.tool.name),
            comments: comments.collect(),
            prompt: format!("{}.", ask(&self.tool.name, arguments)),
            expects_call: true,
            calls: vec![self.call(arguments)],
            turns: Vec::new(),
        }
    }

    fn call(&self, arguments: Option<&Object>) -> (String, Option<Value>) {
        let arguments = arguments.map(|it| Value::Object(it.clone()));
        (self.tool.name.clone(), arguments)
    }

    fn typical_call(&self) -> (String, Option<Value>) {
        self.call(self.typical.as_ref())
    }

    /// What the tool returns in a conversation.
    fn result(&self) -> Object {
        let schema = Value::Object(self.tool.outputs.clone());
        let known = (!self.tool.outputs.is_empty()).then(|| ExampleBuilder::new(&schema));
        let known = known.and_then(|it| it.arguments(ExampleMembers::All, 0));
        let result = known.map_or_else(|| json!({"status": "ok"}), Value::Object);
        Object::from_iter([(self.tool.name.clone(), result)])
    }
}

fn two_tools(one: &DraftTool<'_>, other: &DraftTool<'_>) -> DraftCase {
    let (first, second) = (&one.tool.name, &other.tool.name);
    DraftCase {
        name: format!("{first}+{second}/two-tools"),
        comments: vec![format!("`{first}` and `{second}` in one reply.")],
        prompt: format!(
            "Do both of these in one turn: {}; and {}.",
            lower(&ask(first, one.typical.as_ref())),
            lower(&ask(second, other.typical.as_ref()))
        ),
        expects_call: true,
        calls: vec![one.typical_call(), other.typical_call()],
        turns: Vec::new(),
    }
}

fn in_sequence(one: &DraftTool<'_>, other: &DraftTool<'_>) -> DraftCase {
    let (first, second) = (&one.tool.name, &other.tool.name);
    DraftCase {
        name: format!("{first}+{second}/multi-turn"),
        comments: vec![
            format!("`{first}` first; its result is fed back, and `{second}` has to follow."),
            "The second request repeats the model's own call, which some models then cannot continue."
                .to_owned(),
        ],
        prompt: format!(
            "{}. Wait for its result. After that, {}.",
            ask(first, one.typical.as_ref()),
            lower(&ask(second, other.typical.as_ref()))
        ),
        expects_call: true,
        calls: vec![one.typical_call()],
        turns: vec![DraftTurn {
            comment: "What the tool returns; put a real result here.".to_owned(),
            results: one.result(),
            expects_call: true,
            calls: vec![other.typical_call()],
        }],
    }
}

fn answer_from_result(only: &DraftTool<'_>) -> DraftCase {
    let name = &only.tool.name;
    DraftCase {
        name: format!("{name}/multi-turn"),
        comments: vec![format!(
            "`{name}`: its result is fed back, and the model has to answer instead of calling again."
        )],
        prompt: format!(
            "{}. Then tell me in one sentence what it returned.",
            ask(name, only.typical.as_ref())
        ),
        expects_call: true,
        calls: vec![only.typical_call()],
        turns: vec![DraftTurn {
            comment: "What the tool returns; put a real result here.".to_owned(),
            results: only.result(),
            expects_call: false,
            calls: Vec::new(),
        }],
    }
}

/// The request of a user, without the full stop.
fn ask(tool: &str, arguments: Option<&Object>) -> String {
    let name = quoted(tool);
    let Some(arguments) = arguments.filter(|it| !it.is_empty()) else {
        return format!("Use the tool {name}");
    };
    let is_flat = |it: &Value| !it.is_object() && !it.is_array();
    if arguments.values().all(is_flat) {
        let said: Vec<String> = arguments
            .iter()
            .map(|(key, it)| format!("{key} {it}"))
            .collect();
        return format!("Use the tool {name} with {}", said.join(", "));
    }
    let said = Value::Object(arguments.clone());
    format!("Use the tool {name} with exactly these arguments: {said}")
}

fn quoted(name: &str) -> String {
    format!("`{name}`")
}

/// A request in the middle of a sentence.
fn lower(request: &str) -> String {
    match request.strip_prefix("Use") {
        Some(rest) => format!("use{rest}"),
        None => request.to_owned(),
    }
}

/// Whether an argument is an object or a list of objects.
fn is_nested(schema: &Value) -> bool {
    let is_object = |it: &Value| it.get("properties").is_some();
    is_object(schema) || schema.get("items").is_some_and(is_object)
}
