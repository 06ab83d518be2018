//! Prompts, completion, logging and methods the gateway does not know.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolwarden_guard::FeatureKind;
use toolwarden_mcp::codes::{INTERNAL_ERROR, INVALID_PARAMS};
use toolwarden_mcp::{Era, Members};

use super::asked::Asked;
use super::denial::unavailable;
use super::exchange::{Exchanged, Outgoing, forwarded};
use super::features::{Used, recorded};
use super::parking::{Parked, Parking};
use super::readable::readable;
use super::resources::{no_arguments, unknown_resource};
use super::result::is_object;
use super::{EMPTY, Gateway, Reply, unknown_method};
use crate::catalogue::{Kind, ListError, Shelf, collision};
use crate::upstream::LinkKey;

/// The levels of log messages, the least urgent first.
pub(super) const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

impl Gateway {
    /// Puts a request to a server that belongs to a call which was permitted.
    pub(super) async fn ask_server(
        &self,
        asked: &Arc<Asked>,
        shelf: Arc<Shelf>,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Reply {
        match self.outgoing(asked, &shelf, method, None).await {
            Ok(outgoing) => {
                let outgoing = Outgoing { params, ..outgoing };
                self.answer_of(asked, outgoing).await
            }
            Err(reply) => reply,
        }
    }

    /// Puts a request that needs no permit to a server.
    pub(super) async fn answer_of(&self, asked: &Arc<Asked>, outgoing: Outgoing) -> Reply {
        let method = outgoing.method.clone();
        match self.exchange(asked, outgoing).await {
            Exchanged::Answered(Ok(result)) if !is_object(result.get()) => not_an_object(&method),
            Exchanged::Answered(Ok(result)) => Reply::raw(result),
            Exchanged::Answered(Err(error)) => Reply::Error(error),
            Exchanged::Failed(error) => unavailable(&error),
            Exchanged::Parked(reply) => reply,
        }
    }

    pub(super) async fn get_prompt(&self, asked: &Arc<Asked>, params: Option<&RawValue>) -> Reply {
        const METHOD: &str = "prompts/get";
        let members = Members::of_optional(params);
        let Some(shown) = members.text("name") else {
            return Reply::error(INVALID_PARAMS, "params.name is no string");
        };
        let (shelf, name) = match self.prompt_at(asked, &shown).await {
            Ok(found) => found,
            Err(reply) => {
                let what = (FeatureKind::Prompt, METHOD);
                return self
                    .refuse_unknown(asked, &members, what, &shown, reply)
                    .await;
            }
        };
        let check = |result: String| {
            self.note_references(asked, &shelf, &result);
            Ok(result)
        };
        if let Some(state) = members
            .text("requestState")
            .filter(|it| Parking::is_ours(it))
        {
            // The name is not part of what the state is bound to, for the server has its own.
            let is_same = |parked: &Parked| parked.is_at(&shelf, &name);
            let request = (METHOD, params);
            return self.resumed(asked, request, &state, is_same, check).await;
        }
        let used = self.prompt_used(METHOD, &shelf, (&shown, &name));
        let used = used.listed(&shelf, &[Kind::Prompts], &name);
        let arguments = match recorded(&members, &["arguments"]) {
            Value::Object(mut said) => match said.remove("arguments") {
                Some(arguments @ Value::Object(_)) => arguments,
                Some(other) => json!({"arguments": other}),
                None => no_arguments(),
            },
            other => other,
        };
        let open = match self.permit(asked, &members, &used, arguments).await {
            Ok(open) => open,
            Err(refusal) => return refusal.into_reply(|| unknown_prompt(&shown)),
        };
        let change = (*name != *shown).then_some(("name", &*name));
        let params = forwarded(params, change).map(Cow::into_owned);
        let to = (&shelf, METHOD);
        self.ask_permitted(asked, to, params, open, check).await
    }

    /// A prompt of a server, as the guard decides it.
    pub(super) fn prompt_used<'u>(
        &self,
        method: &'u str,
        shelf: &Shelf,
        (shown, own): (&str, &str),
    ) -> Used<'u> {
        Used {
            aliases: self.other_names(shelf.upstream.name(), own),
            ..Used::new(FeatureKind::Prompt, method, shown).at(shelf)
        }
    }

    async fn prompt_at(
        &self,
        asked: &Arc<Asked>,
        shown: &str,
    ) -> Result<(Arc<Shelf>, Arc<str>), Reply> {
        if let Some(only) = self.transparent() {
            return Ok((only, shown.into()));
        }
        let lists = self.others_for(asked, Kind::Prompts).await;
        let names = self.names_of(Kind::Prompts, &lists);
        if let Some(servers) = names.refused(shown) {
            return Err(Reply::error(INVALID_PARAMS, collision(shown, servers)));
        }
        let found = names
            .find(shown)
            .and_then(|named| Some((self.shelf(&named.server)?, Arc::clone(&named.name))));
        found.ok_or_else(|| unknown_prompt(shown))
    }

    pub(super) async fn complete(&self, asked: &Arc<Asked>, params: Option<&RawValue>) -> Reply {
        const METHOD: &str = "completion/complete";
        let members = Members::of_optional(params);
        let reference = match members
            .get("ref")
            .map(|it| RawValue::from_string(it.to_owned()))
        {
            Some(Ok(reference)) => match readable(&reference) {
                Ok(reference) => reference.to_raw(),
                Err(reply) => return reply,
            },
            _ => return Reply::error(INVALID_PARAMS, "params.ref is missing"),
        };
        let reference = Members::of_optional(Some(&reference));
        let arguments = recorded(&members, &["argument", "context"]);
        // What is decided is what the server reads: the member that the type asks for.
        let kind = reference.text("type").unwrap_or_default();
        let of_kind = |wanted: &str, key: &str| {
            reference
                .text(key)
                .filter(|_| *kind == *wanted && reference.get(other(key)).is_none())
        };
        if let Some(uri) = of_kind("ref/resource", "uri") {
            let address = match self.template_at(asked, &uri).await {
                Ok(address) => address,
                Err(reply) => {
                    let what = (FeatureKind::Resource, METHOD);
                    return self
                        .refuse_unknown(asked, &members, what, &uri, reply)
                        .await;
                }
            };
            let used = address.used(FeatureKind::Resource, METHOD);
            let open = match self.permit(asked, &members, &used, arguments).await {
                Ok(open) => open,
                Err(refusal) => {
                    return refusal.into_reply(|| unknown_resource(&uri, asked.agent.era));
                }
            };
            let renamed = with_reference(&members, &reference, ("uri", &address.uri));
            let params = forwarded(Some(&renamed), None).map(Cow::into_owned);
            let to = (&address.shelf, METHOD);
            return self.ask_permitted(asked, to, params, open, Ok).await;
        }
        let Some(shown) = of_kind("ref/prompt", "name") else {
            return Reply::error(
                INVALID_PARAMS,
                "params.ref is neither {type: ref/prompt, name} nor {type: ref/resource, uri}",
            );
        };
        let (shelf, name) = match self.prompt_at(asked, &shown).await {
            Ok(found) => found,
            Err(reply) => {
                let what = (FeatureKind::Prompt, METHOD);
                return self
                    .refuse_unknown(asked, &members, what, &shown, reply)
                    .await;
            }
        };
        let used = self.prompt_used(METHOD, &shelf, (&shown, &name));
        let used = used.listed(&shelf, &[Kind::Prompts], &name);
        let open = match self.permit(asked, &members, &used, arguments).await {
            Ok(open) => open,
            Err(refusal) => return refusal.into_reply(|| unknown_prompt(&shown)),
        };
        let renamed = with_reference(&members, &reference, ("name", &name));
        let params = forwarded(Some(&renamed), None).map(Cow::into_owned);
        let to = (&shelf, METHOD);
        self.ask_permitted(asked, to, params, open, Ok).await
    }

    pub(super) async fn set_level(&self, asked: &Arc<Asked>, params: Option<&RawValue>) -> Reply {
        let members = Members::of_optional(params);
        let Some(level) = members.text("level").map(Cow::into_owned) else {
            return Reply::error(INVALID_PARAMS, "params.level is no string");
        };
        if !LEVELS.contains(&level.as_str()) {
            let text = format!("params.level is none of {}", LEVELS.join(", "));
            return Reply::error(INVALID_PARAMS, text);
        }
        let mut agent = (**asked.conversation.agent.load()).clone();
        agent.log_level = Some(level);
        asked.conversation.agent.store(Arc::new(agent));
        let mut refusal = None;
        let mut taken = false;
        for shelf in self
            .shelves()
            .iter()
            .filter(|it| it.has_capability("logging") && !it.is_blocked())
            .filter(|it| self.reaches(asked, it))
        {
            let ready = self
                .outgoing(asked, shelf, "logging/setLevel", params)
                .await;
            let ready = ready.map(|ready| self.with_shared_level(ready));
            // A stateless server is told with every request.
            match ready {
                Ok(ready) if ready.looking.era == Era::Handshake => {
                    match self.answer_of(asked, ready).await {
                        Reply::Result(_) | Reply::Nothing => taken = true,
                        Reply::Error(error) => refusal = Some(error),
                    }
                }
                _ => taken = true,
            }
        }
        match refusal.filter(|_| !taken) {
            Some(error) => Reply::Error(error),
            None => Reply::Result(EMPTY.to_owned()),
        }
    }

    /// Over a connection that agents share, the server is told the level of the one that wants to hear most.
    fn with_shared_level(&self, outgoing: Outgoing) -> Outgoing {
        if !self.is_shared_link(&outgoing.looking.key) {
            return outgoing;
        }
        let wanted = self.conversations().all().into_iter().filter_map(|it| {
            let agent = it.agent.load();
            let level = agent.log_level.as_deref()?;
            LEVELS.iter().position(|known| *known == level)
        });
        let level = wanted.min().and_then(|at| LEVELS.get(at));
        let params = level.and_then(|level| {
            let params = json!({"level": level});
            serde_json::value::to_raw_value(&params).ok()
        });
        Outgoing {
            params: params.or(outgoing.params),
            ..outgoing
        }
    }

    /// Whether several agents use a connection.
    pub(super) fn is_shared_link(&self, key: &LinkKey) -> bool {
        !matches!(key, LinkKey::Of(_)) && self.transparent().is_none()
    }

    /// A method the gateway does not know is for the only server, where there is but one, else for the one
    /// server that declares the extension it belongs to.
    pub(super) async fn pass_unknown(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Reply {
        let server = self.transparent().or_else(|| self.extension_server(method));
        let members = Members::of_optional(params);
        let Some(server) = server else {
            // The name that a rule would have: of no server.
            let (what, reply) = ((FeatureKind::Method, method), unknown_method(method));
            return self
                .refuse_unknown(asked, &members, what, method, reply)
                .await;
        };
        let name = format!("{}/{method}", server.upstream.name());
        let used = Used::new(FeatureKind::Method, method, &name).at(&server);
        let keys = members.iter().map(|(key, _)| key);
        let keys: Vec<&str> = keys.filter(|key| *key != "_meta").collect();
        let arguments = recorded(&members, &keys);
        let open = match self.permit(asked, &members, &used, arguments).await {
            Ok(open) => open,
            Err(refusal) => return refusal.into_reply(|| unknown_method(method)),
        };
        let params = forwarded(params, None).map(Cow::into_owned);
        let to = (&server, method);
        self.ask_permitted(asked, to, params, open, Ok).await
    }

    /// Passes a notification of an agent on to the servers it has a connection of its own to: over one that others
    /// share it would speak for them.
    pub(super) async fn pass_notification(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        params: Option<&RawValue>,
    ) {
        for shelf in self.shelves().iter().filter(|it| !it.is_blocked()) {
            let Ok(looking) = shelf.sight(asked.client()).await else {
                continue;
            };
            if looking.era == Era::Handshake
                && !self.is_shared_link(&looking.key)
                && self.reaches(asked, shelf)
            {
                let notified = shelf.upstream.notify(&looking.key, method, params).await;
                // A server without a connection has nothing to be told.
                drop(notified);
            }
        }
    }
}

fn unknown_prompt(shown: &str) -> Reply {
    Reply::error(INVALID_PARAMS, format!("unknown prompt `{shown}`"))
}

/// The member of a reference that the other kind of reference has.
fn other(key: &str) -> &'static str {
    match key {
        "uri" => "name",
        _ => "uri",
    }
}

/// The parameters of a completion that refers to something by its server's own name.
fn with_reference(
    params: &Members<'_>,
    reference: &Members<'_>,
    (key, own): (&str, &str),
) -> Box<RawValue> {
    let mut reference = reference.clone();
    reference.set(key, serde_json::Value::from(own).to_string());
    let reference = reference.to_string();
    let mut params = params.clone();
    params.set("ref", reference);
    params.to_raw()
}

/// What an agent is told where a server cannot be looked at.
pub(super) fn unlisted(error: &ListError) -> Reply {
    match error {
        ListError::Upstream(error) => unavailable(error),
        error => Reply::error(toolwarden_mcp::codes::INTERNAL_ERROR, error.to_string()),
    }
}

/// The answer where a result of a server is not an object, as the protocol has them.
pub(super) fn not_an_object(method: &str) -> Reply {
    let text = format!("the server's answer to `{method}` was withheld: it is not a JSON object");
    Reply::error(INTERNAL_ERROR, text)
}
