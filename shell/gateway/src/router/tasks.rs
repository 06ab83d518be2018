//! Task ids. Servers choose them, so two servers may choose the same one. Agents see them prefixed with the
//! name of their server.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use toolwarden_live_guard::OpenCall;
use toolwarden_mcp::RawObject;
use toolwarden_mcp::error_codes::{INVALID_PARAMS, INVALID_REQUEST};
use toolwarden_model::OwnName;

use super::call::strip_hidden_characters;
use super::forward::{ForwardOutcome, OutgoingMessage, OutgoingRequest, forwarded_params};
use super::{Gateway, RpcReply};
use crate::catalog::ServerCatalog;
use crate::request_context::RequestContext;
use crate::upstream::LinkKey;

/// The member of `_meta` that names the task a message belongs to.
const RELATED_TASK_KEY: &str = "io.modelcontextprotocol/related-task";
/// Separates the name of a server from the id of its task.
const SEPARATOR: char = '/';

/// The longest task id: the gateway stores ids to know their owners.
const MAX_TASK_ID_BYTES: usize = 1_024;

impl Gateway {
    /// A server's result or parameters with the task ids that agents see; `None` if there is nothing to change.
    pub(super) fn with_shown_task(
        &self,
        catalog: &ServerCatalog,
        object: Option<&RawValue>,
    ) -> Option<Box<RawValue>> {
        if self.transparent_server().is_some() {
            return None;
        }
        let server = catalog.upstream.name();
        rewrite_task_ids(object?, &|id| Some(format!("{server}{SEPARATOR}{id}")))
    }

    /// Answers a request about a task.
    pub(super) async fn handle_task_request(
        &self,
        context: &Arc<RequestContext>,
        method: &str,
        params: Option<&RawValue>,
    ) -> RpcReply {
        if method == "tasks/list" {
            return self.list_tasks(context, params).await;
        }
        let members = RawObject::parse_optional(params);
        let Some(shown) = members.text("taskId") else {
            return RpcReply::error(INVALID_PARAMS, "params.taskId is not a string");
        };
        let Some((catalog, id)) = self.find_task(&shown) else {
            return unknown_task(&shown);
        };
        let is_shared = shares_link(context, &catalog).await;
        let (owners, principal) = (&self.shared.task_owners, &context.conversation.principal);
        // Only a permitted call of the same principal starts a task. If one server serves one agent, the server
        // itself decides which tasks exist.
        let is_foreign = match self.transparent_server() {
            Some(_) => is_shared && owners.belongs_to_other(&shown, principal),
            None if is_shared => !owners.belongs_to(&shown, principal),
            None => !owners.has_created(&shown, principal),
        };
        if is_foreign {
            return unknown_task(&shown);
        }
        if context.conversation.tasks.is_withheld(&shown) {
            return RpcReply::error(INVALID_REQUEST, "the answer of this task was withheld");
        }
        let change = (*id != *shown).then_some(("taskId", &*id));
        let Some(params) = forwarded_params(params, change) else {
            return RpcReply::error(INVALID_PARAMS, "params is missing");
        };
        let params = params.into_owned();
        let reply = self
            .forward_for_call(context, Arc::clone(&catalog), method, Some(params))
            .await;
        let RpcReply::Result(result) = reply else {
            return reply;
        };
        let Ok(result) = RawValue::from_string(result) else {
            return RpcReply::error(INVALID_PARAMS, "the result is not JSON");
        };
        // A refusal of the server is passed on in its own words; a result goes only to the owner.
        if is_shared && !owners.belongs_to(&shown, principal) {
            return unknown_task(&shown);
        }
        let tasks = &context.conversation.tasks;
        let settled = match tasks.take_if_finished(method, &shown, &result) {
            Some(open) => {
                self.finish_task(context, &catalog, (method, &shown), open, result)
                    .await
            }
            None => strip_hidden_characters(&catalog, result),
        };
        let RpcReply::Result(text) = settled else {
            return settled;
        };
        let Ok(result) = RawValue::from_string(text) else {
            return RpcReply::error(INVALID_PARAMS, "the result is not JSON");
        };
        let shown = self.with_shown_task(&catalog, Some(&result));
        RpcReply::from_raw(shown.unwrap_or(result))
    }

    /// Reports the outcome of a task's call to the guard, and builds the reply from the server's answer.
    async fn finish_task(
        &self,
        context: &Arc<RequestContext>,
        catalog: &Arc<ServerCatalog>,
        (method, shown): (&str, &str),
        open: OpenCall,
        result: Box<RawValue>,
    ) -> RpcReply {
        let tool = match open.destination() {
            Some(destination) => destination.tool.clone(),
            None => OwnName::new(open.tool()),
        };
        if method == "tasks/result" {
            return self
                .finish_task_result(context, catalog, (shown, &tool), open, result)
                .await;
        }
        let mut members = RawObject::parse_optional(Some(&result));
        let status = members.text("status").unwrap_or_default().into_owned();
        let answer = members.get("result").filter(|_| status == "completed");
        let answer = answer.and_then(|text| RawValue::from_string(text.to_owned()).ok());
        let Some(answer) = answer else {
            let words = format!("the task is {status}");
            open.report_failure_async(&words).wait().await.ok();
            return strip_hidden_characters(catalog, result);
        };
        match self
            .finish_task_result(context, catalog, (shown, &tool), open, answer)
            .await
        {
            RpcReply::Result(answer) => {
                members.set("result", answer);
                strip_hidden_characters(catalog, members.to_raw())
            }
            reply => reply,
        }
    }

    /// Settles the answer like that of a call without a task; a withheld answer stays withheld.
    async fn finish_task_result(
        &self,
        context: &Arc<RequestContext>,
        catalog: &Arc<ServerCatalog>,
        (shown, tool): (&str, &OwnName),
        open: OpenCall,
        answer: Box<RawValue>,
    ) -> RpcReply {
        let settled = self
            .finish_result(context, catalog, tool, open, answer)
            .await;
        settled.unwrap_or_else(|withheld| {
            context.conversation.tasks.withhold(shown);
            withheld
        })
    }

    async fn list_tasks(
        &self,
        context: &Arc<RequestContext>,
        params: Option<&RawValue>,
    ) -> RpcReply {
        let mut tasks = Vec::new();
        let (owners, principal) = (&self.shared.task_owners, &context.conversation.principal);
        let catalogs = self.server_catalogs();
        let has_tasks = owners.has_any(principal) || self.transparent_server().is_some();
        for catalog in catalogs
            .iter()
            .filter(|it| has_tasks || self.may_reach_server(context, it))
        {
            let is_shared = shares_link(context, catalog).await;
            let outgoing = match self
                .outgoing_request(context, catalog, "tasks/list", params)
                .await
            {
                Ok(outgoing) => outgoing,
                Err(_) => continue,
            };
            let ForwardOutcome::Response(Ok(result)) = self.forward(context, outgoing).await else {
                continue;
            };
            let members = RawObject::parse_optional(Some(&result));
            let list: Vec<Box<RawValue>> = members
                .get("tasks")
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default();
            for task in list {
                let shown = self.with_shown_task(catalog, Some(&task)).unwrap_or(task);
                let id = RawObject::parse_optional(Some(&shown));
                let id = id.text("taskId").unwrap_or_default();
                let is_own = match is_shared {
                    true => owners.belongs_to(&id, principal),
                    false => {
                        self.transparent_server().is_some() || owners.has_created(&id, principal)
                    }
                };
                if is_own {
                    tasks.push(shown.get().to_owned());
                }
            }
        }
        RpcReply::Result(format!("{{\"tasks\":[{}]}}", tasks.join(",")))
    }

    /// Keeps a permitted call open until its task has ended.
    pub(super) fn track_task(&self, context: &RequestContext, result: &RawValue, open: OpenCall) {
        let members = RawObject::parse_optional(Some(result));
        let id = members
            .object("task")
            .and_then(|task| task.text("taskId").map(|it| it.into_owned()))
            .or_else(|| members.text("taskId").map(|it| it.into_owned()));
        if id.as_ref().is_some_and(|id| id.len() > MAX_TASK_ID_BYTES) {
            // The task then has no owner, and no agent can access it.
            let why = format!("its task has a name of more than {MAX_TASK_ID_BYTES} bytes");
            drop(open.report_failure_async(&why));
            return;
        }
        if let Some(id) = id {
            let owner = &context.conversation.principal;
            self.shared.task_owners.record(&id, owner);
            context.conversation.tasks.insert(id, open);
        }
    }

    fn find_task(&self, shown: &str) -> Option<(Arc<ServerCatalog>, String)> {
        if let Some(only) = self.transparent_server() {
            return Some((only, shown.to_owned()));
        }
        let (server, id) = shown.split_once(SEPARATOR)?;
        Some((self.server_catalog(server)?, id.to_owned()))
    }

    /// A request to one server, ready to be sent.
    pub(super) async fn outgoing_request(
        &self,
        context: &RequestContext,
        catalog: &Arc<ServerCatalog>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<OutgoingRequest, RpcReply> {
        if catalog.is_blocked() {
            let text = format!("server `{}` is blocked", catalog.upstream.name());
            return Err(RpcReply::error(INVALID_REQUEST, text));
        }
        let view = catalog
            .call_view(context.client())
            .await
            .map_err(|error| super::other_methods::list_error_reply(&error))?;
        Ok(OutgoingRequest {
            catalog: Arc::clone(catalog),
            view,
            request: OutgoingMessage::Other {
                method: method.to_owned(),
                params: forwarded_params(params, None).map(std::borrow::Cow::into_owned),
            },
            headers: super::call_trace::trace_header(context)
                .into_iter()
                .collect(),
        })
    }
}

/// Whether other agents use the same link, so that the server cannot tell their tasks apart.
async fn shares_link(context: &RequestContext, catalog: &ServerCatalog) -> bool {
    let sight = catalog.call_view(context.client()).await;
    // In doubt, they do.
    !sight.is_ok_and(|view| matches!(view.key, LinkKey::Conversation(_)))
}

fn unknown_task(shown: &str) -> RpcReply {
    RpcReply::error(INVALID_PARAMS, format!("no task `{shown}` is known"))
}

/// An object with changed task ids: its own, that of the task it contains, and that of the task it belongs to.
fn rewrite_task_ids(
    object: &RawValue,
    change: &dyn Fn(&str) -> Option<String>,
) -> Option<Box<RawValue>> {
    // Few messages are about tasks, and searching text is cheaper than parsing it.
    if !object.get().contains("taskId") {
        return None;
    }
    let mut members = RawObject::parse(object).ok()?;
    let changed = |members: &RawObject<'_>| {
        let id = members.text("taskId")?;
        Some(Value::from(change(&id)?).to_string())
    };
    let mut touched = false;
    if let Some(id) = changed(&members) {
        members.set("taskId", id);
        touched = true;
    }
    let task = members.object("task").and_then(|mut task| {
        let id = changed(&task)?;
        task.set("taskId", id);
        Some(task.to_string())
    });
    if let Some(task) = task {
        members.set("task", task);
        touched = true;
    }
    let meta = members.object("_meta").and_then(|mut meta| {
        let related = {
            let mut related = meta.object(RELATED_TASK_KEY)?;
            let id = changed(&related)?;
            related.set("taskId", id);
            related.to_string()
        };
        meta.set(RELATED_TASK_KEY, related);
        Some(meta.to_string())
    });
    if let Some(meta) = meta {
        members.set("_meta", meta);
        touched = true;
    }
    touched.then(|| members.to_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tasks_are_changed_wherever_they_stand() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let shown = |text: &str| {
            let changed = rewrite_task_ids(&raw(text), &|id| Some(format!("a/{id}")));
            changed.map(|it| it.get().to_owned())
        };
        for (text, expected) in [
            (
                r#"{"taskId":"1","x":2.0}"#,
                Some(r#"{"taskId":"a/1","x":2.0}"#),
            ),
            (
                r#"{"task":{"taskId":"1","status":"working"}}"#,
                Some(r#"{"task":{"taskId":"a/1","status":"working"}}"#),
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}}"#,
                Some(r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a/1"}}}"#),
            ),
            (r#"{"content":[{"text":"taskId"}]}"#, None),
        ] {
            assert_eq!(shown(text).as_deref(), expected, "{text}");
        }
    }
}
