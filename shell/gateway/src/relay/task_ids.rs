//! Names of tasks: servers make them up, so that two of them may make up the same one. Agents see them
//! with the name of their server before them.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use toolwarden_mcp::Members;
use toolwarden_mcp::codes::{INVALID_PARAMS, INVALID_REQUEST};
use toolwarden_warden::guard::OpenCall;

use super::asked::Asked;
use super::call::stripped;
use super::exchange::{Exchanged, Outgoing, forwarded};
use super::{Gateway, Reply};
use crate::catalogue::Shelf;
use crate::upstream::LinkKey;

/// The member of `_meta` that names the task a message belongs to.
const RELATED: &str = "io.modelcontextprotocol/related-task";
/// What stands between the name of a server and that of its task.
const SEPARATOR: char = '/';

/// The longest name of a task: the gateway keeps the names of tasks to know whose they are.
const LONGEST_NAME: usize = 1_024;

impl Gateway {
    /// A result or parameters of a server with the names of tasks as agents see them; none where there
    /// is nothing to change.
    pub(super) fn with_shown_task(
        &self,
        shelf: &Shelf,
        object: Option<&RawValue>,
    ) -> Option<Box<RawValue>> {
        if self.transparent().is_some() {
            return None;
        }
        let server = shelf.upstream.name();
        rewritten(object?, &|id| Some(format!("{server}{SEPARATOR}{id}")))
    }

    /// Answers a request about a task.
    pub(super) async fn task(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Reply {
        if method == "tasks/list" {
            return self.list_tasks(asked, params).await;
        }
        let members = Members::of_optional(params);
        let Some(shown) = members.text("taskId") else {
            return Reply::error(INVALID_PARAMS, "params.taskId is no string");
        };
        let Some((shelf, id)) = self.task_at(&shown) else {
            return unknown(&shown);
        };
        let is_shared = is_shared(asked, &shelf).await;
        let (owners, principal) = (&self.shared.task_owners, &asked.conversation.principal);
        // Only a permitted call of the same principal starts a task. Where one server serves one agent the
        // server says itself which tasks there are.
        let is_foreign = match self.transparent() {
            Some(_) => is_shared && owners.is_of_others(&shown, principal),
            None if is_shared => !owners.is_of(&shown, principal),
            None => !owners.has_made(&shown, principal),
        };
        if is_foreign {
            return unknown(&shown);
        }
        if asked.conversation.tasks.is_withheld(&shown) {
            return Reply::error(INVALID_REQUEST, "the answer of this task was withheld");
        }
        let change = (*id != *shown).then_some(("taskId", &*id));
        let Some(params) = forwarded(params, change) else {
            return Reply::error(INVALID_PARAMS, "params is missing");
        };
        let params = params.into_owned();
        let reply = self
            .ask_server(asked, Arc::clone(&shelf), method, Some(params))
            .await;
        let Reply::Result(result) = reply else {
            return reply;
        };
        let Ok(result) = RawValue::from_string(result) else {
            return Reply::error(INVALID_PARAMS, "the result is no JSON");
        };
        // What a server refuses is told in its words; what it tells is for the owner.
        if is_shared && !owners.is_of(&shown, principal) {
            return unknown(&shown);
        }
        let tasks = &asked.conversation.tasks;
        let settled = match tasks.take_if_over(method, &shown, &result) {
            Some(open) => {
                self.settle_task(asked, &shelf, (method, &shown), open, result)
                    .await
            }
            None => stripped(&shelf, result),
        };
        let Reply::Result(text) = settled else {
            return settled;
        };
        let Ok(result) = RawValue::from_string(text) else {
            return Reply::error(INVALID_PARAMS, "the result is no JSON");
        };
        let shown = self.with_shown_task(&shelf, Some(&result));
        Reply::raw(shown.unwrap_or(result))
    }

    /// Tells the guard how the call of a task ended, and makes the answer of what the server says of it.
    async fn settle_task(
        &self,
        asked: &Arc<Asked>,
        shelf: &Arc<Shelf>,
        (method, shown): (&str, &str),
        open: OpenCall,
        result: Box<RawValue>,
    ) -> Reply {
        let named = self.named(open.tool());
        let tool = named.map_or_else(|| open.tool().into(), |it| it.name);
        if method == "tasks/result" {
            return self
                .settle_answer(asked, shelf, (shown, &tool), open, result)
                .await;
        }
        let mut members = Members::of_optional(Some(&result));
        let status = members.text("status").unwrap_or_default().into_owned();
        let answer = members.get("result").filter(|_| status == "completed");
        let answer = answer.and_then(|text| RawValue::from_string(text.to_owned()).ok());
        let Some(answer) = answer else {
            let words = format!("the task is {status}");
            open.failed_soon(&words).settled().await.ok();
            return stripped(shelf, result);
        };
        match self
            .settle_answer(asked, shelf, (shown, &tool), open, answer)
            .await
        {
            Reply::Result(answer) => {
                members.set("result", answer);
                stripped(shelf, members.to_raw())
            }
            reply => reply,
        }
    }

    /// As a call that is answered at once; what is withheld then stays withheld.
    async fn settle_answer(
        &self,
        asked: &Arc<Asked>,
        shelf: &Arc<Shelf>,
        (shown, tool): (&str, &str),
        open: OpenCall,
        answer: Box<RawValue>,
    ) -> Reply {
        let settled = self.settle_result(asked, shelf, tool, open, answer).await;
        settled.unwrap_or_else(|withheld| {
            asked.conversation.tasks.withhold(shown);
            withheld
        })
    }

    async fn list_tasks(&self, asked: &Arc<Asked>, params: Option<&RawValue>) -> Reply {
        let mut tasks = Vec::new();
        let (owners, principal) = (&self.shared.task_owners, &asked.conversation.principal);
        let shelves = self.shelves();
        let has_tasks = owners.has_any(principal) || self.transparent().is_some();
        for shelf in shelves
            .iter()
            .filter(|it| has_tasks || self.reaches(asked, it))
        {
            let is_shared = is_shared(asked, shelf).await;
            let outgoing = match self.outgoing(asked, shelf, "tasks/list", params).await {
                Ok(outgoing) => outgoing,
                Err(_) => continue,
            };
            let Exchanged::Answered(Ok(result)) = self.exchange(asked, outgoing).await else {
                continue;
            };
            let members = Members::of_optional(Some(&result));
            let list: Vec<Box<RawValue>> = members
                .get("tasks")
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default();
            for task in list {
                let shown = self.with_shown_task(shelf, Some(&task)).unwrap_or(task);
                let id = Members::of_optional(Some(&shown));
                let id = id.text("taskId").unwrap_or_default();
                let is_own = match is_shared {
                    true => owners.is_of(&id, principal),
                    false => self.transparent().is_some() || owners.has_made(&id, principal),
                };
                if is_own {
                    tasks.push(shown.get().to_owned());
                }
            }
        }
        Reply::Result(format!("{{\"tasks\":[{}]}}", tasks.join(",")))
    }

    /// Keeps a permitted call open until its task is over.
    pub(super) fn keep_task(&self, asked: &Asked, result: &RawValue, open: OpenCall) {
        let members = Members::of_optional(Some(result));
        let id = members
            .object("task")
            .and_then(|task| task.text("taskId").map(|it| it.into_owned()))
            .or_else(|| members.text("taskId").map(|it| it.into_owned()));
        if id.as_ref().is_some_and(|id| id.len() > LONGEST_NAME) {
            // It has no owner then, and no agent gets at it.
            let why = format!("its task has a name of more than {LONGEST_NAME} bytes");
            drop(open.failed_soon(&why));
            return;
        }
        if let Some(id) = id {
            let owner = &asked.conversation.principal;
            self.shared.task_owners.note(&id, owner);
            asked.conversation.tasks.keep(id, open);
        }
    }

    fn task_at(&self, shown: &str) -> Option<(Arc<Shelf>, String)> {
        if let Some(only) = self.transparent() {
            return Some((only, shown.to_owned()));
        }
        let (server, id) = shown.split_once(SEPARATOR)?;
        Some((self.shelf(server)?, id.to_owned()))
    }

    /// A request to one server, ready to be sent.
    pub(super) async fn outgoing(
        &self,
        asked: &Asked,
        shelf: &Arc<Shelf>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Outgoing, Reply> {
        if shelf.is_blocked() {
            let text = format!("server `{}` is blocked", shelf.upstream.name());
            return Err(Reply::error(INVALID_REQUEST, text));
        }
        let looking = shelf
            .sight(asked.client())
            .await
            .map_err(|error| super::pass::unlisted(&error))?;
        Ok(Outgoing {
            shelf: Arc::clone(shelf),
            looking,
            method: method.to_owned(),
            params: forwarded(params, None).map(std::borrow::Cow::into_owned),
            headers: super::traced::trace_header(asked).into_iter().collect(),
        })
    }
}

/// Whether others speak over the same link, so that a server does not tell their tasks apart.
async fn is_shared(asked: &Asked, shelf: &Shelf) -> bool {
    let sight = shelf.sight(asked.client()).await;
    // In doubt others do.
    !sight.is_ok_and(|looking| matches!(looking.key, LinkKey::Of(_)))
}

fn unknown(shown: &str) -> Reply {
    Reply::error(INVALID_PARAMS, format!("no task `{shown}` is known"))
}

/// An object whose names of tasks are changed: its own, that of the task in it, and that of the task it
/// belongs to.
fn rewritten(object: &RawValue, change: &dyn Fn(&str) -> Option<String>) -> Option<Box<RawValue>> {
    // Few messages are about tasks, and searching text is cheaper than taking it apart.
    if !object.get().contains("taskId") {
        return None;
    }
    let mut members = Members::of(object).ok()?;
    let changed = |members: &Members<'_>| {
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
            let mut related = meta.object(RELATED)?;
            let id = changed(&related)?;
            related.set("taskId", id);
            related.to_string()
        };
        meta.set(RELATED, related);
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
            let changed = rewritten(&raw(text), &|id| Some(format!("a/{id}")));
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
