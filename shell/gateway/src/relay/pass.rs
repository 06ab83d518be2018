//! Prompts, completion, logging and methods the gateway does not know.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use toolwarden_mcp::codes::INVALID_PARAMS;
use toolwarden_mcp::{Era, Members};

use super::asked::Asked;
use super::denial::unavailable;
use super::exchange::{Exchanged, Outgoing, forwarded};
use super::parking::{Parked, Parking};
use super::resources::Address;
use super::result::cacheable;
use super::{EMPTY, Gateway, Reply, unknown_method};
use crate::catalogue::{Kind, ListError, Shelf, collision};

impl Gateway {
    /// Asks one server, and makes its answer fit the agent's era.
    pub(super) async fn ask_server(
        &self,
        asked: &Arc<Asked>,
        shelf: Arc<Shelf>,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Reply {
        let ready = self.outgoing(asked, &shelf, method, None).await;
        let outgoing = match ready {
            Ok(outgoing) => Outgoing { params, ..outgoing },
            Err(reply) => return reply,
        };
        self.answer_of(asked, method, outgoing).await
    }

    pub(super) async fn answer_of(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        outgoing: Outgoing,
    ) -> Reply {
        let exchanged = self.exchange(asked, outgoing).await;
        self.fitting(asked, method, exchanged)
    }

    fn fitting(&self, asked: &Asked, method: &str, exchanged: Exchanged) -> Reply {
        let reply = match exchanged {
            Exchanged::Answered(Ok(result)) => Reply::raw(result),
            Exchanged::Answered(Err(error)) => Reply::Error(error),
            Exchanged::Failed(error) => unavailable(&error),
            Exchanged::Parked(reply) => return reply,
        };
        match (reply, asked.agent.era) {
            (Reply::Result(result), Era::Stateless) if method == "resources/read" => {
                Reply::Result(cacheable(result))
            }
            (reply, _) => reply,
        }
    }

    /// Goes on with a request for which the agent was asked, where it says that it is one and what waits
    /// fits.
    pub(super) async fn resumed(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        params: Option<&RawValue>,
        is_same: impl Fn(&Parked) -> bool,
    ) -> Option<Reply> {
        let members = Members::of_optional(params);
        let state = members.text("requestState")?;
        if !Parking::is_ours(&state) {
            return None;
        }
        let resumed = self.resume(asked, method, params, &state, is_same).await;
        Some(match resumed {
            Ok(resumed) => self.fitting(asked, method, resumed.exchanged),
            Err(reply) => reply,
        })
    }

    pub(super) async fn get_prompt(&self, asked: &Arc<Asked>, params: Option<&RawValue>) -> Reply {
        const METHOD: &str = "prompts/get";
        let members = Members::of_optional(params);
        let Some(shown) = members.text("name") else {
            return Reply::error(INVALID_PARAMS, "params.name is no string");
        };
        match self.prompt_at(asked, &shown).await {
            Ok((shelf, name)) => {
                // The name is not part of what the state is bound to, for the server has its own.
                let is_same = |parked: &Parked| parked.is_at(&shelf, &name);
                if let Some(reply) = self.resumed(asked, METHOD, params, is_same).await {
                    return reply;
                }
                let change = (*name != *shown).then_some(("name", &*name));
                let params = forwarded(params, change).map(Cow::into_owned);
                let server = Arc::clone(&shelf);
                let reply = self.ask_server(asked, shelf, METHOD, params).await;
                if let Reply::Result(result) = &reply {
                    self.note_references(asked, &server, result);
                }
                reply
            }
            Err(reply) => reply,
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
        found.ok_or_else(|| Reply::error(INVALID_PARAMS, format!("unknown prompt `{shown}`")))
    }

    pub(super) async fn complete(&self, asked: &Arc<Asked>, params: Option<&RawValue>) -> Reply {
        const METHOD: &str = "completion/complete";
        let members = Members::of_optional(params);
        let reference = members.object("ref").unwrap_or_default();
        if let Some(uri) = reference.text("uri") {
            let Address {
                shelf, uri: own, ..
            } = match self.template_at(asked, &uri).await {
                Ok(address) => address,
                Err(reply) => return reply,
            };
            let renamed = with_reference(&members, &reference, ("uri", &own));
            let params = forwarded(Some(&renamed), None).map(Cow::into_owned);
            return self.ask_server(asked, shelf, METHOD, params).await;
        }
        let Some(shown) = reference.text("name") else {
            return Reply::error(
                INVALID_PARAMS,
                "params.ref names neither a prompt nor a resource",
            );
        };
        let (shelf, name) = match self.prompt_at(asked, &shown).await {
            Ok(found) => found,
            Err(reply) => return reply,
        };
        let renamed = with_reference(&members, &reference, ("name", &name));
        let params = forwarded(Some(&renamed), None).map(Cow::into_owned);
        self.ask_server(asked, shelf, METHOD, params).await
    }

    pub(super) async fn set_level(&self, asked: &Arc<Asked>, params: Option<&RawValue>) -> Reply {
        let members = Members::of_optional(params);
        let Some(level) = members.text("level").map(Cow::into_owned) else {
            return Reply::error(INVALID_PARAMS, "params.level is no string");
        };
        let mut agent = (**asked.conversation.agent.load()).clone();
        agent.log_level = Some(level);
        asked.conversation.agent.store(Arc::new(agent));
        let mut refusal = None;
        let mut taken = false;
        for shelf in self
            .shelves()
            .iter()
            .filter(|it| it.has_capability("logging") && !it.is_blocked())
        {
            let ready = self
                .outgoing(asked, shelf, "logging/setLevel", params)
                .await;
            // A stateless server is told with every request.
            match ready {
                Ok(ready) if ready.looking.era == Era::Handshake => {
                    match self.answer_of(asked, "logging/setLevel", ready).await {
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

    /// A method the gateway does not know is for the only server, where there is but one, else for the one
    /// server that declares the extension it belongs to.
    pub(super) async fn pass_unknown(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Reply {
        let server = self.transparent().or_else(|| self.extension_server(method));
        let Some(server) = server else {
            return unknown_method(method);
        };
        let params = forwarded(params, None).map(Cow::into_owned);
        self.ask_server(asked, server, method, params).await
    }

    /// Passes a notification of an agent on to the servers it has a connection to.
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
            if looking.era == Era::Handshake {
                let notified = shelf.upstream.notify(&looking.key, method, params).await;
                // A server without a connection has nothing to be told.
                drop(notified);
            }
        }
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
