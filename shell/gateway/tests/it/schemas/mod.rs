//! Every answer that the gateway writes itself, against the official JSON Schema of its revision.

mod clients;
mod errors;
mod lists;
mod notifications;
mod official;
mod refusals;
mod rounds;
mod tasks;

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use crate::support::Agent;

const STATELESS: &str = "2026-07-28";

/// The revisions of the specification, oldest first.
const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    STATELESS,
];

/// The name of the result type of each method, the same in all revisions that have the method.
const RESULTS: [(&str, &str); 18] = [
    ("completion/complete", "CompleteResult"),
    ("initialize", "InitializeResult"),
    ("logging/setLevel", "EmptyResult"),
    ("ping", "EmptyResult"),
    ("prompts/get", "GetPromptResult"),
    ("prompts/list", "ListPromptsResult"),
    ("resources/list", "ListResourcesResult"),
    ("resources/read", "ReadResourceResult"),
    ("resources/subscribe", "EmptyResult"),
    ("resources/templates/list", "ListResourceTemplatesResult"),
    ("resources/unsubscribe", "EmptyResult"),
    ("server/discover", "DiscoverResult"),
    ("subscriptions/listen", "SubscriptionsListenResult"),
    ("tasks/cancel", "CancelTaskResult"),
    ("tasks/get", "GetTaskResult"),
    ("tasks/list", "ListTasksResult"),
    ("tools/call", "CallToolResult"),
    ("tools/list", "ListToolsResult"),
];

/// The whole message of the errors that 2026-07-28 defines by their code.
const ERRORS: [(i64, &str); 3] = [
    (-32020, "HeaderMismatchError"),
    (-32021, "MissingRequiredClientCapabilityError"),
    (-32022, "UnsupportedProtocolVersionError"),
];

/// One revision of the specification.
struct Revision {
    version: &'static str,
    schema: Value,
    /// Where definitions are in the schema.
    definitions: &'static str,
}

impl Revision {
    /// None if the official schemas cannot be had here, which the testkit reports.
    fn read(version: &'static str) -> Option<Self> {
        let schema = official::schemas()?[version].clone();
        let definitions = match schema.get("$defs") {
            Some(_) => "$defs",
            None => "definitions",
        };
        Some(Self {
            version,
            schema,
            definitions,
        })
    }

    fn all() -> Vec<Self> {
        let all = REVISIONS.into_iter();
        all.filter_map(Self::read).collect()
    }

    fn handshake() -> Vec<Self> {
        let all = Self::all().into_iter();
        all.filter(|it| it.era() == Era::Handshake).collect()
    }

    fn stateless() -> Option<Self> {
        Self::read(STATELESS)
    }

    fn era(&self) -> Era {
        match self.version {
            STATELESS => Era::Stateless,
            _ => Era::Handshake,
        }
    }

    /// Capabilities of an agent that answers every request this revision lets a server make.
    fn capabilities(&self) -> Value {
        let mut capabilities = json!({"sampling": {}, "roots": {}});
        if self.has("ElicitRequest") {
            capabilities["elicitation"] = match self.version {
                "2025-06-18" => json!({}),
                _ => json!({"form": {}}),
            };
        }
        capabilities
    }

    async fn agent(&self, url: &str, headers: &[(&str, &str)]) -> Agent {
        let capabilities = self.capabilities();
        match self.era() {
            Era::Handshake => Agent::open_at(url, self.version, &capabilities, headers).await,
            Era::Stateless => Agent::stateless_with(url, &capabilities, headers),
        }
    }

    fn has(&self, definition: &str) -> bool {
        self.schema[self.definitions].get(definition).is_some()
    }

    /// Why a value is not valid against a definition.
    fn faults(&self, definition: &str, value: &Value) -> Vec<String> {
        assert!(self.has(definition), "{} {definition}", self.version);
        let mut schema = self.schema.clone();
        let reference = format!("#/{}/{definition}", self.definitions);
        schema["allOf"] = json!([{"$ref": reference}]);
        let validator = jsonschema::options()
            .offline()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        let errors = validator.iter_errors(value);
        errors
            .map(|it| format!("{definition}{}: {it}", it.instance_path()))
            .collect()
    }

    /// Why the answer to a request is not valid.
    fn answer_faults(&self, method: &str, message: &Value) -> Vec<String> {
        if let Some(error) = message.get("error") {
            let mut faults = self.faults(self.error_definition(), message);
            let defined = ERRORS.iter().find(|(code, _)| error["code"] == *code);
            if let (Era::Stateless, Some((_, definition))) = (self.era(), defined) {
                faults.extend(self.faults(definition, message));
            }
            return faults;
        }
        let whole = match self.has("JSONRPCResultResponse") {
            true => "JSONRPCResultResponse",
            false => "JSONRPCResponse",
        };
        let mut faults = self.faults(whole, message);
        let result = &message["result"];
        let definition = match result["resultType"].as_str() {
            Some("input_required") if self.era() == Era::Stateless => "InputRequiredResult",
            _ if result.get("task").is_some() => "CreateTaskResult",
            _ => result_definition(method),
        };
        faults.extend(self.faults(definition, result));
        faults
    }

    fn error_definition(&self) -> &'static str {
        match self.has("JSONRPCErrorResponse") {
            true => "JSONRPCErrorResponse",
            false => "JSONRPCError",
        }
    }

    /// Until 2025-11-25 every error must have an id, also the answer to a message without one.
    fn demands_ids(&self) -> bool {
        self.error_definition() == "JSONRPCError"
    }

    /// Why what a server sends unprompted is not valid.
    fn unprompted_faults(&self, message: &Value) -> Vec<String> {
        match message.get("id") {
            Some(_) => self.faults("ServerRequest", message),
            None => self.faults("ServerNotification", message),
        }
    }
}

fn result_definition(method: &str) -> &'static str {
    let mut results = RESULTS.iter();
    let found = results.find(|(it, _)| *it == method);
    found.unwrap_or_else(|| panic!("{method}")).1
}

/// The answers of one revision, and what is wrong with them.
struct Sheet<'r> {
    revision: &'r Revision,
    faults: Vec<String>,
}

impl<'r> Sheet<'r> {
    const fn new(revision: &'r Revision) -> Self {
        Self {
            revision,
            faults: Vec::new(),
        }
    }

    /// Makes a request, checks all that comes back, and returns the answer.
    async fn ask(&mut self, agent: &Agent, what: &str, method: &str, params: Value) -> Value {
        let mut all = agent.begin(method, params).await.rest().await;
        let answer = all.pop().unwrap_or_else(|| panic!("{what}: no answer"));
        for message in &all {
            let faults = self.revision.unprompted_faults(message);
            self.note(what, message, faults);
        }
        self.answer(what, method, &answer);
        answer
    }

    async fn call(&mut self, agent: &Agent, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask(agent, tool, "tools/call", params).await
    }

    fn answer(&mut self, what: &str, method: &str, message: &Value) {
        let faults = self.revision.answer_faults(method, message);
        self.note(what, message, faults);
    }

    fn unprompted(&mut self, what: &str, message: &Value) {
        let faults = self.revision.unprompted_faults(message);
        self.note(what, message, faults);
    }

    fn note(&mut self, what: &str, message: &Value, faults: Vec<String>) {
        let version = self.revision.version;
        let lines = faults.into_iter();
        let lines = lines.map(|it| format!("{version} {what}: {it}\n    in {message}"));
        self.faults.extend(lines);
    }
}

/// Fails with everything that is wrong.
fn assert_valid(faults: &[String]) {
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A checker that accepts everything would make every other test here pass.
#[test]
fn the_schemas_tell_right_from_wrong() {
    if let Some(schemas) = official::schemas() {
        let mut known: Vec<_> = schemas.keys().collect();
        known.sort();
        assert_eq!(known, REVISIONS);
    }
    for revision in Revision::all() {
        let mut result = json!({"content": [{"type": "text", "text": "a"}], "isError": true});
        if revision.era() == Era::Stateless {
            result["resultType"] = json!("complete");
        }
        let right = json!({"jsonrpc": "2.0", "id": 1, "result": result});
        let none: [&str; 0] = [];
        assert_eq!(revision.answer_faults("tools/call", &right), none);
        let mut wrong = right.clone();
        wrong["result"]["content"][0]["text"] = json!(1);
        let mut without_content = right.clone();
        without_content["result"]["content"].take();
        let mut of_stateless = vec![];
        if revision.era() == Era::Stateless {
            let mut untyped = right.clone();
            let members = untyped["result"].as_object_mut().unwrap();
            members.remove("resultType");
            of_stateless.push(untyped);
        }
        let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "y"}});
        let all = [wrong, without_content, error].into_iter();
        for wrong in all.chain(of_stateless) {
            let faults = revision.answer_faults("tools/call", &wrong);
            assert!(!faults.is_empty(), "{} {wrong}", revision.version);
        }
    }
}
