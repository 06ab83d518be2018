//! Forwards a request to a server and translates between protocol eras.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use toolwarden_live_guard::{
    MAX_INPUT_ROUNDS, OpenCall, PermitError, PermittedCall, SentCall, with_input,
};
use toolwarden_mcp::error_codes::INTERNAL_ERROR;
use toolwarden_mcp::protocol::{LOG_LEVEL, with_client_meta, without_client_meta};
use toolwarden_mcp::{Era, McpRequest, RawObject, RpcError};
use toolwarden_model::ExposedName;

use super::error_replies::shutdown_error;
use super::result_kind::{ResultKind, result_kind};
use super::server_messages::RequestMessageHandler;
use super::{Gateway, RpcReply};
use crate::catalog::{ListError, ServerCatalog, ServerView};
use crate::request_context::{OWN_KEY_PREFIX, RequestContext};
use crate::upstream::{LinkRoute, RpcResult, UpstreamError};

const TOOLS_CALL: &str = "tools/call";
/// The most questions of a server in one answer.
const MAX_QUESTIONS: usize = 64;

/// A request ready to be sent to a server.
#[derive(Debug)]
pub(super) struct OutgoingRequest {
    pub(super) catalog: Arc<ServerCatalog>,
    pub(super) view: ServerView,
    pub(super) request: OutgoingMessage,
    /// Headers beyond those of the protocol.
    pub(super) headers: Vec<(String, String)>,
}

/// What is sent, as the server is to have it, but for what its era wants.
#[derive(Debug)]
pub(super) enum OutgoingMessage {
    /// A call of a tool, which needs a permit.
    Call(PermittedCall),
    /// Any other request.
    Other {
        method: String,
        params: Option<Box<RawValue>>,
    },
}

impl OutgoingRequest {
    /// The same request with other parameters. Those of a call are given by its permit and stay.
    pub(super) fn with_params(mut self, new: Option<Box<RawValue>>) -> Self {
        if let OutgoingMessage::Other { params, .. } = &mut self.request {
            *params = new;
        }
        self
    }
}

impl OutgoingMessage {
    pub(super) fn method(&self) -> &str {
        match self {
            Self::Call(_) => TOOLS_CALL,
            Self::Other { method, .. } => method,
        }
    }

    pub(super) fn params(&self) -> Option<&RawValue> {
        match self {
            Self::Call(call) => Some(call.params()),
            Self::Other { params, .. } => params.as_deref(),
        }
    }

    /// Changes the envelope: what the protocol or the gateway say about the request.
    fn rewrap(
        &mut self,
        rewrap: impl FnOnce(Option<&RawValue>) -> Option<Cow<'_, RawValue>>,
    ) -> Result<(), PermitError> {
        match self {
            Self::Call(call) => {
                call.rewrap(|params| rewrap(Some(params)).unwrap_or(Cow::Borrowed(params)))
            }
            Self::Other { params, .. } => {
                if let Some(Cow::Owned(rewrapped)) = rewrap(params.as_deref()) {
                    *params = Some(rewrapped);
                }
                Ok(())
            }
        }
    }
}

/// A request that was sent, and may have to be sent again with more input.
enum SentRequest {
    Call(SentCall),
    Other {
        method: String,
        params: Option<Box<RawValue>>,
    },
}

/// How a request travels, whatever it is.
struct ForwardPath<'o> {
    catalog: &'o Arc<ServerCatalog>,
    view: &'o ServerView,
    headers: &'o [(String, String)],
    aside: &'o RequestMessageHandler,
}

/// What came of a request.
#[derive(Debug)]
pub(super) enum ForwardOutcome {
    /// The server answered.
    Response(Result<Box<RawValue>, RpcError>),
    /// It did not.
    Failed(UpstreamError),
    /// The agent is asked for more first; the request goes on meanwhile.
    InputRequired(RpcReply),
}

impl Gateway {
    /// Sends a request and waits for its answer. What the server asks meanwhile is put to the agent.
    pub(super) async fn forward(
        &self,
        context: &Arc<RequestContext>,
        outgoing: OutgoingRequest,
    ) -> ForwardOutcome {
        self.exchange_decided(context, outgoing, None).await.1
    }

    /// As [`Self::forward`], for a call or another request that was decided. Gives the call back unless it
    /// goes on elsewhere.
    pub(super) async fn forward_call(
        &self,
        context: &Arc<RequestContext>,
        outgoing: OutgoingRequest,
        open: OpenCall,
    ) -> (Option<OpenCall>, ForwardOutcome) {
        self.exchange_decided(context, outgoing, Some(open)).await
    }

    async fn exchange_decided(
        &self,
        context: &Arc<RequestContext>,
        outgoing: OutgoingRequest,
        open: Option<OpenCall>,
    ) -> (Option<OpenCall>, ForwardOutcome) {
        let server_asks = outgoing.view.era == Era::Handshake;
        if context.agent.era == Era::Stateless && server_asks && accepts_questions(context) {
            return Box::pin(self.forward_with_pending_input(context, outgoing, open)).await;
        }
        let exchanged = match self.forward_direct(context, outgoing).await {
            Ok(outcome) => ForwardOutcome::Response(outcome),
            Err(error) => ForwardOutcome::Failed(error),
        };
        (open, exchanged)
    }

    /// Sends a request over its link; a stateless server that asks for more before it answers is given
    /// what the agent says, where the agent cannot be told to ask again by itself.
    pub(super) async fn forward_direct(
        &self,
        context: &Arc<RequestContext>,
        outgoing: OutgoingRequest,
    ) -> Result<RpcResult, UpstreamError> {
        let aside = RequestMessageHandler::new(self, &outgoing, context);
        self.forward_with_handler(context, outgoing, &aside).await
    }

    /// As [`Self::forward_direct`], with a given audience for the server's messages. Where the gateway
    /// ends first, the agent gets an error instead of a closed connection.
    pub(super) async fn forward_with_handler(
        &self,
        context: &Arc<RequestContext>,
        outgoing: OutgoingRequest,
        aside: &RequestMessageHandler,
    ) -> Result<RpcResult, UpstreamError> {
        tokio::select! {
            outcome = self.forward_rounds(context, outgoing, aside) => outcome,
            () = self.wait_for_abort() => Ok(Err(shutdown_error())),
        }
    }

    async fn forward_rounds(
        &self,
        context: &Arc<RequestContext>,
        outgoing: OutgoingRequest,
        aside: &RequestMessageHandler,
    ) -> Result<RpcResult, UpstreamError> {
        let OutgoingRequest {
            catalog,
            view,
            mut request,
            headers,
        } = outgoing;
        let path = ForwardPath {
            catalog: &catalog,
            view: &view,
            headers: &headers,
            aside,
        };
        if request
            .rewrap(|params| params_for_era(params, &view, context))
            .is_err()
        {
            return Ok(Err(not_permitted()));
        }
        for _round in 0..MAX_INPUT_ROUNDS {
            let (sent, outcome) = self.send_to_server(&path, request).await;
            let outcome = outcome?;
            let Ok(result) = &outcome else {
                return Ok(outcome);
            };
            let translated = context.agent.era == Era::Handshake
                && view.era == Era::Stateless
                && result_kind(result) == ResultKind::InputRequired;
            if !translated {
                return Ok(outcome);
            }
            let gathered = match Box::pin(self.collect_input(context, result)).await {
                Ok(gathered) => gathered,
                Err(error) => return Ok(Err(error)),
            };
            request = match gathered.answer_to(sent) {
                Some(request) => request,
                None => break,
            };
        }
        Ok(Err(RpcError {
            code: INTERNAL_ERROR,
            message: format!(
                "server `{}` asked for more input {MAX_INPUT_ROUNDS} times",
                catalog.upstream.name()
            ),
            data: None,
        }))
    }

    async fn send_to_server(
        &self,
        path: &ForwardPath<'_>,
        request: OutgoingMessage,
    ) -> (SentRequest, Result<RpcResult, UpstreamError>) {
        // The progress token is ours for this sending only: a further round starts from the agent's own.
        let (stamped, in_flight) = path.aside.begin(request.params());
        let stamped = match stamped {
            Some(Cow::Owned(stamped)) => Some(stamped),
            Some(Cow::Borrowed(_)) | None => None,
        };
        let on_sent = |id: i64| in_flight.set_link_id(id);
        let principal = path.aside.principal();
        let route = LinkRoute {
            principal: Some(&principal),
            ..LinkRoute::new(&path.view.key, &path.view.client_info)
        };
        let mut template = McpRequest::new(TOOLS_CALL, None);
        template.headers = path.headers;
        template.handler = Some(path.aside);
        template.on_sent = Some(&on_sent);
        match request {
            OutgoingMessage::Call(mut call) => {
                let stamping = call.stamp(|params| match stamped {
                    Some(stamped) => Cow::Owned(stamped),
                    None => Cow::Borrowed(params),
                });
                if stamping.is_err() {
                    let sent = SentRequest::Call(call.into_sent());
                    return (sent, Ok(Err(not_permitted())));
                }
                let (sent, outcome) = self.send_call(path, call, route, template).await;
                (SentRequest::Call(sent), outcome)
            }
            OutgoingMessage::Other { method, params } => {
                let mut mcp_request = template;
                mcp_request.method = &method;
                mcp_request.params = stamped.as_deref().or(params.as_deref());
                let outcome = path.catalog.upstream.ask(route, mcp_request).await;
                (SentRequest::Other { method, params }, outcome)
            }
        }
    }

    /// Sends a permitted call, and once more over a new session where its permit allows that.
    async fn send_call(
        &self,
        path: &ForwardPath<'_>,
        call: PermittedCall,
        route: LinkRoute<'_>,
        request: McpRequest<'_>,
    ) -> (SentCall, Result<RpcResult, UpstreamError>) {
        let upstream = &path.catalog.upstream;
        let (sent, outcome) = upstream.call(call, route, request).await;
        let Err(UpstreamError::SessionExpired { was_sent, .. }) = &outcome else {
            return (sent, outcome);
        };
        match sent.retry(*was_sent) {
            Ok(again) => {
                if let Err(error) =
                    Box::pin(self.check_still_served(path, again.exposed_tool())).await
                {
                    return (again.into_sent(), Err(error));
                }
                upstream.call(again, route, request).await
            }
            Err(sent) => (sent, outcome),
        }
    }

    /// Checks a server that was reconnected, before a call that was decided goes there: it may be
    /// another version.
    async fn check_still_served(
        &self,
        path: &ForwardPath<'_>,
        tool: &ExposedName,
    ) -> Result<(), UpstreamError> {
        let ForwardPath { catalog, view, .. } = path;
        let server = catalog.upstream.server_name();
        let why = match self.checked_tools(catalog, view, None).await {
            Ok(_) => {
                let directory = self.shared.directory.load();
                let found = directory.tools.find(tool);
                match directory.withheld_from(tool, view.variant.as_deref()) {
                    Some(why) => why.to_owned(),
                    None if found.is_some_and(|it| it.server == *server) => return Ok(()),
                    None => "it is gone".to_owned(),
                }
            }
            Err(ListError::Upstream(error)) => return Err(error),
            Err(error) => error.to_string(),
        };
        let server = Arc::clone(server.as_arc());
        Err(UpstreamError::Withheld { server, why })
    }

    /// Puts what a stateless server asks for to an agent that answers requests.
    async fn collect_input(
        &self,
        context: &Arc<RequestContext>,
        result: &RawValue,
    ) -> Result<CollectedInput, RpcError> {
        let members = RawObject::parse_optional(Some(result));
        let requests = members.object("inputRequests").unwrap_or_default();
        if requests.iter().count() > MAX_QUESTIONS || requests.duplicate_key().is_some() {
            return Err(malformed_input_request());
        }
        let mut pending = Vec::new();
        for (key, request) in requests.iter() {
            let request: Box<RawValue> =
                serde_json::from_str(request).map_err(|_| malformed_input_request())?;
            let request = RawObject::parse(&request).map_err(|_| malformed_input_request())?;
            let method = request.text("method").ok_or_else(malformed_input_request)?;
            let params = request
                .get("params")
                .and_then(|it| RawValue::from_string(it.to_owned()).ok());
            let answer =
                context
                    .conversation
                    .ask(Some(&context.sender), &method, params.as_deref());
            pending.push((key.to_owned(), answer));
        }
        let mut responses = RawObject::default();
        let mut answers = Vec::new();
        for (key, answer) in pending {
            let answer = answer.answer().await.ok_or_else(agent_gone_error)??;
            answers.push((key, answer));
        }
        for (key, answer) in &answers {
            responses.set(key, answer.get());
        }
        Ok(CollectedInput {
            responses: (!responses.is_empty()).then(|| responses.to_string()),
            state: members.get("requestState").map(str::to_owned),
        })
    }
}

/// What an agent said to what a server asked.
struct CollectedInput {
    responses: Option<String>,
    /// What the server wants to see again, as JSON text.
    state: Option<String>,
}

impl CollectedInput {
    /// The request once more, with what the agent said. None where its permit allows no more rounds.
    fn answer_to(self, sent: SentRequest) -> Option<OutgoingMessage> {
        let (responses, state) = (self.responses.as_deref(), self.state.as_deref());
        match sent {
            SentRequest::Call(sent) => sent.with_input(responses, state).map(OutgoingMessage::Call),
            SentRequest::Other { method, params } => Some(OutgoingMessage::Other {
                method,
                params: Some(with_input(params.as_deref(), responses, state)),
            }),
        }
    }
}

/// Whether an agent says that it could answer something a server asks.
pub(super) fn accepts_questions(context: &RequestContext) -> bool {
    ["sampling", "elicitation", "roots"]
        .iter()
        .any(|capability| context.agent.has_capability(capability))
}

/// The parameters in the form of the server's era.
fn params_for_era<'o>(
    params: Option<&'o RawValue>,
    view: &ServerView,
    context: &RequestContext,
) -> Option<Cow<'o, RawValue>> {
    match (context.agent.era, view.era) {
        // A stateless agent describes itself in the very words the server wants.
        (Era::Stateless, Era::Stateless) | (Era::Handshake, Era::Handshake) => {
            params.map(Cow::Borrowed)
        }
        (Era::Handshake, Era::Stateless) => {
            let mut stamped = with_client_meta(params, &view.client_info);
            if let Some(level) = &context.conversation.agent.load().log_level {
                stamped = with_log_level(&stamped, level);
            }
            Some(Cow::Owned(stamped))
        }
        (Era::Stateless, Era::Handshake) => params.map(without_client_meta),
    }
}

fn with_log_level(params: &RawValue, level: &str) -> Box<RawValue> {
    let mut members = RawObject::parse_optional(Some(params));
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
pub(super) fn forwarded_params<'p>(
    params: Option<&'p RawValue>,
    change: Option<(&'static str, &str)>,
) -> Option<Cow<'p, RawValue>> {
    let text = params?;
    let members = RawObject::parse_optional(Some(text));
    let meta = members.received_object("_meta");
    Some(members.forwarded(text, meta.as_ref(), OWN_KEY_PREFIX, change))
}

fn not_permitted() -> RpcError {
    RpcError {
        code: INTERNAL_ERROR,
        message: PermitError::OtherCall.to_string(),
        data: None,
    }
}

fn malformed_input_request() -> RpcError {
    RpcError {
        code: INTERNAL_ERROR,
        message: "the server asks for input in an unknown form".to_owned(),
        data: None,
    }
}

fn agent_gone_error() -> RpcError {
    RpcError {
        code: INTERNAL_ERROR,
        message: "the agent left before it answered what the server asked".to_owned(),
        data: None,
    }
}
