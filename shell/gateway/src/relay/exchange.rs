//! A request on its way to a server and back, whatever eras the two sides speak.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use toolwarden_mcp::codes::INTERNAL_ERROR;
use toolwarden_mcp::protocol::{LOG_LEVEL, stamped, unstamped};
use toolwarden_mcp::{Era, Members, RpcError};
use toolwarden_warden::guard::OpenCall;

use super::asked::{Asked, OWN_KEYS};
use super::denial::shutting_down;
use super::hearing::Aside;
use super::result::{Looked, look};
use super::{Gateway, Reply};
use crate::catalogue::{ListError, Looking, Shelf};
use crate::upstream::{OnExpired, UpstreamAsking, UpstreamCalling, UpstreamError};

/// How often a server may ask for more before it answers.
const MOST_ROUNDS: usize = 16;
/// The most questions of a server in one answer.
const MOST_QUESTIONS: usize = 64;

/// A request ready to be sent to a server.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) shelf: Arc<Shelf>,
    pub(super) looking: Looking,
    pub(super) method: String,
    /// The parameters as the server is to have them, but for what its era wants.
    pub(super) params: Option<Box<RawValue>>,
    /// Headers beyond those of the protocol.
    pub(super) headers: Vec<(String, String)>,
}

/// What came of a request.
#[derive(Debug)]
pub(super) enum Exchanged {
    /// The server answered.
    Answered(Result<Box<RawValue>, RpcError>),
    /// It did not.
    Failed(UpstreamError),
    /// The agent is asked for more first; the request goes on meanwhile.
    Parked(Reply),
}

impl Gateway {
    /// Sends a request and waits for its answer. What the server asks meanwhile is put to the agent.
    pub(super) async fn exchange(&self, asked: &Arc<Asked>, outgoing: Outgoing) -> Exchanged {
        let server_asks = outgoing.looking.era == Era::Handshake;
        if asked.agent.era == Era::Stateless && server_asks && can_be_asked(asked) {
            return Box::pin(self.exchange_parked(asked, outgoing, None))
                .await
                .1;
        }
        match self.exchange_direct(asked, &outgoing, None).await {
            Ok(outcome) => Exchanged::Answered(outcome),
            Err(error) => Exchanged::Failed(error),
        }
    }

    /// As [`Self::exchange`], for a permitted call or another permitted request. Gives the call back unless it goes on elsewhere.
    pub(super) async fn exchange_call(
        &self,
        asked: &Arc<Asked>,
        outgoing: Outgoing,
        open: OpenCall,
    ) -> (Option<OpenCall>, Exchanged) {
        let server_asks = outgoing.looking.era == Era::Handshake;
        if asked.agent.era == Era::Stateless && server_asks && can_be_asked(asked) {
            return Box::pin(self.exchange_parked(asked, outgoing, Some(open))).await;
        }
        let exchanged = match self.exchange_direct(asked, &outgoing, Some(&open)).await {
            Ok(outcome) => Exchanged::Answered(outcome),
            Err(error) => Exchanged::Failed(error),
        };
        (Some(open), exchanged)
    }

    /// Sends a request over its link; a stateless server that asks for more before it answers is given
    /// what the agent says, where the agent cannot be told to ask again by itself.
    pub(super) async fn exchange_direct(
        &self,
        asked: &Arc<Asked>,
        outgoing: &Outgoing,
        open: Option<&OpenCall>,
    ) -> Result<Result<Box<RawValue>, RpcError>, UpstreamError> {
        let aside = Aside::new(self, outgoing, asked);
        self.exchange_with(asked, outgoing, &aside, open).await
    }

    /// As [`Self::exchange_direct`], with a given audience for the server's messages. Where the gateway
    /// ends first, the agent gets an error instead of a closed connection.
    pub(super) async fn exchange_with(
        &self,
        asked: &Arc<Asked>,
        outgoing: &Outgoing,
        aside: &Aside,
        open: Option<&OpenCall>,
    ) -> Result<Result<Box<RawValue>, RpcError>, UpstreamError> {
        tokio::select! {
            outcome = self.exchange_rounds(asked, outgoing, aside, open) => outcome,
            () = self.cut_off() => Ok(Err(shutting_down())),
        }
    }

    async fn exchange_rounds(
        &self,
        asked: &Arc<Asked>,
        outgoing: &Outgoing,
        aside: &Aside,
        open: Option<&OpenCall>,
    ) -> Result<Result<Box<RawValue>, RpcError>, UpstreamError> {
        let mut params = for_era(outgoing, asked);
        for _round in 0..MOST_ROUNDS {
            let outcome = self.send(outgoing, params.as_deref(), aside, open).await?;
            let Ok(result) = &outcome else {
                return Ok(outcome);
            };
            let translated = asked.agent.era == Era::Handshake
                && outgoing.looking.era == Era::Stateless
                && look(result) == Looked::InputRequired;
            if !translated {
                return Ok(outcome);
            }
            match Box::pin(self.gather(asked, result)).await {
                Ok(gathered) => {
                    params = Some(Cow::Owned(gathered.into_params(params.as_deref())));
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Err(RpcError {
            code: INTERNAL_ERROR,
            message: format!(
                "server `{}` asked for more input {MOST_ROUNDS} times",
                outgoing.shelf.upstream.name()
            ),
            data: None,
        }))
    }

    async fn send(
        &self,
        outgoing: &Outgoing,
        params: Option<&RawValue>,
        aside: &Aside,
        open: Option<&OpenCall>,
    ) -> Result<Result<Box<RawValue>, RpcError>, UpstreamError> {
        let upstream = &outgoing.shelf.upstream;
        let Looking { key, face, .. } = &outgoing.looking;
        let (params, flight) = aside.depart(params);
        let params = params.as_deref();
        let sent = |id: i64| flight.sent(id);
        let principal = aside.principal();
        let principal = Some(&*principal);
        match (open, params) {
            (Some(open), Some(params)) if outgoing.method == "tools/call" => {
                let calling = UpstreamCalling {
                    headers: &outgoing.headers,
                    aside: Some(aside),
                    sent: Some(&sent),
                    on_expired: OnExpired::Report,
                    principal,
                    ..UpstreamCalling::new(params)
                };
                let outcome = upstream.call(open, key, face, calling).await;
                // A server may say that it did not read what it has acted upon. What an approval allows once is
                // sent once.
                let Err(UpstreamError::Unread { was_sent, .. }) = &outcome else {
                    return outcome;
                };
                if *was_sent && open.uses_up_state() {
                    return outcome;
                }
                Box::pin(self.still_serves(outgoing, open.tool())).await?;
                let again = UpstreamCalling {
                    on_expired: OnExpired::Fail,
                    ..calling
                };
                upstream.call(open, key, face, again).await
            }
            _ => {
                let asking = UpstreamAsking {
                    headers: &outgoing.headers,
                    aside: Some(aside),
                    sent: Some(&sent),
                    principal,
                    ..UpstreamAsking::new(&outgoing.method, params)
                };
                upstream.ask(key, face, asking).await
            }
        }
    }

    /// Looks at a server that was reached anew, before a call that was decided goes there: it may be
    /// another version.
    async fn still_serves(&self, outgoing: &Outgoing, tool: &str) -> Result<(), UpstreamError> {
        let Outgoing { shelf, looking, .. } = outgoing;
        let server: Arc<str> = shelf.upstream.name().into();
        let why = match self.tools_of(shelf, looking, None).await {
            Ok(_) => {
                let directory = self.shared.directory.load();
                let found = directory.tools.find(tool);
                match directory.withheld_from(tool, looking.variant.as_deref()) {
                    Some(why) => why.to_owned(),
                    None if found.is_some_and(|it| it.server == server) => return Ok(()),
                    None => "it is gone".to_owned(),
                }
            }
            Err(ListError::Upstream(error)) => return Err(error),
            Err(error) => error.to_string(),
        };
        Err(UpstreamError::Withheld { server, why })
    }

    /// Puts what a stateless server asks for to an agent that answers requests.
    async fn gather(&self, asked: &Arc<Asked>, result: &RawValue) -> Result<Gathered, RpcError> {
        let members = Members::of_optional(Some(result));
        let requests = members.object("inputRequests").unwrap_or_default();
        if requests.iter().count() > MOST_QUESTIONS || requests.twice().is_some() {
            return Err(broken());
        }
        let mut pending = Vec::new();
        for (key, request) in requests.iter() {
            let request: Box<RawValue> = serde_json::from_str(request).map_err(|_| broken())?;
            let request = Members::of(&request).map_err(|_| broken())?;
            let method = request.text("method").ok_or_else(broken)?;
            let params = request
                .get("params")
                .and_then(|it| RawValue::from_string(it.to_owned()).ok());
            let answer = asked
                .conversation
                .ask(Some(&asked.outlet), &method, params.as_deref());
            pending.push((key.to_owned(), answer));
        }
        let mut responses = Members::default();
        let mut answers = Vec::new();
        for (key, answer) in pending {
            let answer = answer.answer().await.ok_or_else(gone)??;
            answers.push((key, answer));
        }
        for (key, answer) in &answers {
            responses.set(key, answer.get());
        }
        Ok(Gathered {
            responses: (!responses.is_empty()).then(|| responses.to_string()),
            state: members.get("requestState").map(str::to_owned),
        })
    }
}

/// What an agent said to what a server asked.
struct Gathered {
    responses: Option<String>,
    /// What the server wants to see again, as JSON text.
    state: Option<String>,
}

impl Gathered {
    fn into_params(self, params: Option<&RawValue>) -> Box<RawValue> {
        let mut members = Members::of_optional(params);
        members.remove("inputResponses");
        members.remove("requestState");
        if let Some(responses) = &self.responses {
            members.set("inputResponses", responses.as_str());
        }
        if let Some(state) = &self.state {
            members.set("requestState", state.as_str());
        }
        members.to_raw()
    }
}

/// Whether an agent says that it could answer something a server asks.
pub(super) fn can_be_asked(asked: &Asked) -> bool {
    ["sampling", "elicitation", "roots"]
        .iter()
        .any(|capability| asked.agent.has(capability))
}

/// The parameters in the form of the server's era.
fn for_era<'o>(outgoing: &'o Outgoing, asked: &Asked) -> Option<Cow<'o, RawValue>> {
    let params = outgoing.params.as_deref();
    match (asked.agent.era, outgoing.looking.era) {
        // A stateless agent describes itself in the very words the server wants.
        (Era::Stateless, Era::Stateless) | (Era::Handshake, Era::Handshake) => {
            params.map(Cow::Borrowed)
        }
        (Era::Handshake, Era::Stateless) => {
            let mut stamped = stamped(params, &outgoing.looking.face);
            if let Some(level) = &asked.conversation.agent.load().log_level {
                stamped = with_level(&stamped, level);
            }
            Some(Cow::Owned(stamped))
        }
        (Era::Stateless, Era::Handshake) => params.map(unstamped),
    }
}

fn with_level(params: &RawValue, level: &str) -> Box<RawValue> {
    let mut members = Members::of_optional(Some(params));
    let level = serde_json::Value::from(level).to_string();
    let meta = {
        let mut meta = members.object("_meta").unwrap_or_default();
        meta.set(LOG_LEVEL, level);
        meta.to_string()
    };
    members.set("_meta", meta);
    members.to_raw()
}

/// The parameters of a request without what is ours in `_meta`, and with another value of one member.
pub(super) fn forwarded<'p>(
    params: Option<&'p RawValue>,
    change: Option<(&'static str, &str)>,
) -> Option<Cow<'p, RawValue>> {
    let text = params?;
    let members = Members::of_optional(Some(text));
    Some(forwarded_members(text, &members, change))
}

/// As [`forwarded`], of parameters that are taken apart already.
pub(super) fn forwarded_members<'p>(
    text: &'p RawValue,
    members: &Members<'p>,
    change: Option<(&'static str, &str)>,
) -> Cow<'p, RawValue> {
    let ours = |meta: &Members<'_>| meta.iter().any(|(key, _)| key.starts_with(OWN_KEYS));
    let meta = members.object("_meta").filter(ours).map(|mut meta| {
        meta.retain(|key| !key.starts_with(OWN_KEYS));
        meta.to_string()
    });
    if meta.is_none() && change.is_none() {
        return Cow::Borrowed(text);
    }
    let mut members = members.clone();
    match meta {
        Some(meta) if meta == "{}" => members.remove("_meta"),
        Some(meta) => members.set("_meta", meta),
        None => {}
    }
    if let Some((key, value)) = change {
        members.set(key, serde_json::Value::from(value).to_string());
    }
    Cow::Owned(members.to_raw())
}

fn broken() -> RpcError {
    RpcError {
        code: INTERNAL_ERROR,
        message: "the server asks for input in a form nobody knows".to_owned(),
        data: None,
    }
}

fn gone() -> RpcError {
    RpcError {
        code: INTERNAL_ERROR,
        message: "the agent left before it answered what the server asked".to_owned(),
        data: None,
    }
}
