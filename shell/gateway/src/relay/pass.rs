//! What is no tool: prompts, resources, completion, logging and whatever else a server offers.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use toolwarden_mcp::codes::{INVALID_PARAMS, RESOURCE_NOT_FOUND};
use toolwarden_mcp::{Era, Members, RpcError};

use super::asked::Asked;
use super::denial::unavailable;
use super::exchange::{Exchanged, Outgoing, forwarded};
use super::parking::{Parked, Parking};
use super::result::{cacheable, typed};
use super::{EMPTY, Gateway, Reply, unknown_method};
use crate::catalogue::{Kind, ListError, Shelf, collision};
use crate::uri_template;

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

    async fn answer_of(&self, asked: &Arc<Asked>, method: &str, outgoing: Outgoing) -> Reply {
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
            (Reply::Result(result), Era::Stateless) => Reply::Result(typed(result)),
            (reply, _) => reply,
        }
    }

    /// Goes on with a request for which the agent was asked, where it says that it is one and what waits
    /// fits.
    async fn resumed(
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
                self.ask_server(asked, shelf, METHOD, params).await
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

    pub(super) async fn read_resource(
        &self,
        asked: &Arc<Asked>,
        params: Option<&RawValue>,
    ) -> Reply {
        const METHOD: &str = "resources/read";
        if let Some(reply) = self.resumed(asked, METHOD, params, |_| true).await {
            return reply;
        }
        let members = Members::of_optional(params);
        let Some(uri) = members.text("uri") else {
            return Reply::error(INVALID_PARAMS, "params.uri is no string");
        };
        let params = || forwarded(params, None).map(Cow::into_owned);
        let holders = self.holders(asked, &uri).await;
        let mut last = unknown_resource(&uri, asked.agent.era);
        // Only where no list has it is more than one server asked.
        for shelf in holders {
            last = self.ask_server(asked, shelf, METHOD, params()).await;
            let absent = matches!(
                &last,
                Reply::Error(error) if [RESOURCE_NOT_FOUND, INVALID_PARAMS].contains(&error.code)
            );
            if !absent {
                return last;
            }
        }
        last
    }

    /// The servers that may have a resource: the one that lists it, else one with a fitting template,
    /// else all that have resources.
    async fn holders(&self, asked: &Arc<Asked>, uri: &str) -> Vec<Arc<Shelf>> {
        if let Some(only) = self.transparent() {
            return vec![only];
        }
        let listed = self.others_for(asked, Kind::Resources).await;
        let mut holders = listed.iter();
        let holder = holders.find(|(_, list)| list.items.iter().any(|item| *item.key == *uri));
        if let Some((shelf, _)) = holder {
            return vec![Arc::clone(shelf)];
        }
        let templates = self.others_for(asked, Kind::Templates).await;
        let fits = |key: &str| uri_template::fits(key, uri);
        let mut holders = templates.iter();
        let holder = holders.find(|(_, list)| list.items.iter().any(|item| fits(&item.key)));
        if let Some((shelf, _)) = holder {
            return vec![Arc::clone(shelf)];
        }
        let shelves = self.shelves();
        let open = shelves
            .iter()
            .filter(|shelf| shelf.has(Kind::Resources) && !shelf.is_blocked());
        open.cloned().collect()
    }

    pub(super) async fn subscribe(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Reply {
        let members = Members::of_optional(params);
        let Some(uri) = members.text("uri") else {
            return Reply::error(INVALID_PARAMS, "params.uri is no string");
        };
        if method == "resources/unsubscribe" {
            let server = asked.conversation.unsubscribe(&uri);
            let Some(shelf) = server.and_then(|server| self.shelf(&server)) else {
                return Reply::Result(EMPTY.to_owned());
            };
            return self.unwatch_resource(asked, &shelf, params).await;
        }
        if self.watch_resource(asked, &uri).await {
            Reply::Result(EMPTY.to_owned())
        } else {
            unknown_resource(&uri, asked.agent.era)
        }
    }

    /// Has a server tell of changes of a resource. Says whether one does.
    pub(super) async fn watch_resource(&self, asked: &Arc<Asked>, uri: &str) -> bool {
        for shelf in self.holders(asked, uri).await {
            let Ok(ready) = self
                .outgoing(asked, &shelf, "resources/subscribe", None)
                .await
            else {
                continue;
            };
            let server: Arc<str> = shelf.upstream.name().into();
            if ready.looking.era == Era::Stateless {
                if asked.conversation.is_subscribed(uri, &server) {
                    return true;
                }
                let stream = self.listen_for_resource(&shelf, ready.looking, uri).await;
                if stream.is_some() {
                    asked.conversation.subscribe(uri, server, stream);
                    return true;
                }
                continue;
            }
            let params = serde_json::value::to_raw_value(&serde_json::json!({"uri": uri})).ok();
            let outgoing = Outgoing { params, ..ready };
            let exchanged = self.exchange_direct(asked, &outgoing, None).await;
            if matches!(exchanged, Ok(Ok(_))) {
                asked.conversation.subscribe(uri, server, None);
                return true;
            }
        }
        false
    }

    /// Has a server tell no more of a resource that is unsubscribed already, whose stream has ended.
    pub(super) async fn unwatch_resource(
        &self,
        asked: &Arc<Asked>,
        shelf: &Arc<Shelf>,
        params: Option<&RawValue>,
    ) -> Reply {
        let ready = self.outgoing(asked, shelf, "resources/unsubscribe", params);
        match ready.await {
            Ok(ready) if ready.looking.era == Era::Stateless => Reply::Result(EMPTY.to_owned()),
            Ok(ready) => self.answer_of(asked, "resources/unsubscribe", ready).await,
            Err(reply) => reply,
        }
    }

    pub(super) async fn complete(&self, asked: &Arc<Asked>, params: Option<&RawValue>) -> Reply {
        const METHOD: &str = "completion/complete";
        let members = Members::of_optional(params);
        let reference = members.object("ref").unwrap_or_default();
        if let Some(uri) = reference.text("uri") {
            let Some(shelf) = self.template_at(asked, &uri).await else {
                return unknown_resource(&uri, asked.agent.era);
            };
            let params = forwarded(params, None).map(Cow::into_owned);
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
        let mut outgoing = members.clone();
        let renamed = {
            let mut reference = reference.clone();
            reference.set("name", serde_json::Value::from(&*name).to_string());
            reference.to_string()
        };
        outgoing.set("ref", renamed);
        let outgoing = outgoing.to_raw();
        let params = forwarded(Some(&outgoing), None).map(Cow::into_owned);
        self.ask_server(asked, shelf, METHOD, params).await
    }

    /// The server whose template it is.
    async fn template_at(&self, asked: &Arc<Asked>, uri: &str) -> Option<Arc<Shelf>> {
        if let Some(only) = self.transparent() {
            return Some(only);
        }
        let templates = self.others_for(asked, Kind::Templates).await;
        let mut holders = templates.iter();
        let holder = holders.find(|(_, list)| list.items.iter().any(|item| *item.key == *uri));
        match holder {
            Some((shelf, _)) => Some(Arc::clone(shelf)),
            None => self.holders(asked, uri).await.into_iter().next(),
        }
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

    /// A method nobody here knows is for the only server, where there is but one.
    pub(super) async fn pass_unknown(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Reply {
        let Some(only) = self.transparent() else {
            return unknown_method(method);
        };
        let params = forwarded(params, None).map(Cow::into_owned);
        self.ask_server(asked, only, method, params).await
    }

    /// Passes a notification of an agent on to the servers it has a connection to.
    pub(super) async fn pass_notification(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        params: Option<&RawValue>,
    ) {
        for shelf in self.shelves().iter().filter(|it| !it.is_blocked()) {
            let Ok(looking) = shelf.sight(&asked.conversation.id, &asked.agent.face).await else {
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

/// What an agent is told where a server cannot be looked at.
pub(super) fn unlisted(error: &ListError) -> Reply {
    match error {
        ListError::Upstream(error) => unavailable(error),
        error => Reply::error(toolwarden_mcp::codes::INTERNAL_ERROR, error.to_string()),
    }
}

fn unknown_resource(uri: &str, era: Era) -> Reply {
    // The stateless era gave the older code up.
    let code = match era {
        Era::Handshake => RESOURCE_NOT_FOUND,
        Era::Stateless => INVALID_PARAMS,
    };
    Reply::Error(RpcError {
        code,
        message: format!("no server behind this gateway has the resource `{uri}`"),
        data: serde_json::value::to_raw_value(&serde_json::json!({"uri": uri})).ok(),
    })
}
