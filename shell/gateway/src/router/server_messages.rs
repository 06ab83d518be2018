//! Messages that servers send besides responses, and the agents they are for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use toolwarden_mcp::error_codes::METHOD_NOT_FOUND;
use toolwarden_mcp::serve::encode::notification;
use toolwarden_mcp::{Era, MessageHandler, RawObject, RpcError, ServerMessage};

use super::forward::OutgoingRequest;
use super::notify_agent::{RESOURCE_UPDATED, with_shown_uri};
use crate::agent_info::empty_object;
use crate::catalog::{ListKind, ServerCatalog};
use crate::conversation::Conversation;
use crate::gateway::{Gateway, GatewayInner};
use crate::in_flight::{InFlightGuard, InFlightRequest, InFlightRequests, ServerRequest};
use crate::pending_inputs::ResumableHandler;
use crate::request_context::RequestContext;
use crate::upstream::{LinkKey, Upstream, UpstreamChange, UpstreamObserver};

/// How long an agent may take to respond to a server's request, which may involve a person.
const AGENT_RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);

/// Receives the messages of a server while it processes one request of an agent.
#[derive(Debug)]
pub(super) struct RequestMessageHandler {
    gateway: Gateway,
    catalog: Arc<ServerCatalog>,
    key: LinkKey,
    context: ArcSwap<RequestContext>,
    /// The request's number among those in flight; 0 before it is sent.
    number: AtomicU64,
    in_flight: Arc<InFlightRequests>,
    question_sender: Option<mpsc::Sender<ServerRequest>>,
    /// Dropped when the request has ended.
    end_signal: watch::Sender<()>,
}

impl RequestMessageHandler {
    pub(super) fn new(
        gateway: &Gateway,
        outgoing: &OutgoingRequest,
        context: &Arc<RequestContext>,
    ) -> Self {
        let key = outgoing.view.key.clone();
        Self {
            gateway: gateway.clone(),
            catalog: Arc::clone(&outgoing.catalog),
            in_flight: gateway.in_flight_on(&outgoing.catalog, &key),
            key,
            context: ArcSwap::new(Arc::clone(context)),
            number: AtomicU64::new(0),
            question_sender: None,
            end_signal: watch::Sender::new(()),
        }
    }

    /// Collects the server's requests for an agent that gets them as `input_required` and sends its request again.
    pub(super) fn with_question_sender(mut self, asks: mpsc::Sender<ServerRequest>) -> Self {
        self.question_sender = Some(asks);
        self
    }

    /// Registers the request as in flight and replaces its progress token with a unique one of the gateway.
    pub(super) fn begin<'p>(
        &self,
        params: Option<&'p RawValue>,
    ) -> (Option<std::borrow::Cow<'p, RawValue>>, InFlightGuard) {
        let (params, departed) = self.in_flight.begin(self.in_flight_request(), params);
        self.number.store(departed.number(), Ordering::Release);
        (params, departed)
    }

    /// The principal the request is sent for.
    pub(super) fn principal(&self) -> Arc<str> {
        Arc::clone(&self.context.load().conversation.principal)
    }

    fn in_flight_request(&self) -> InFlightRequest {
        InFlightRequest {
            context: self.context.load_full(),
            question_sender: self.question_sender.clone(),
            end_signal: Some(self.end_signal.subscribe()),
        }
    }

    fn dispatcher(&self) -> ServerMessageDispatcher<'_> {
        ServerMessageDispatcher {
            gateway: &self.gateway,
            catalog: &self.catalog,
            key: &self.key,
            in_flight: &self.in_flight,
        }
    }
}

impl ResumableHandler for RequestMessageHandler {
    fn attach(&self, context: &Arc<RequestContext>, params: Option<&RawValue>) {
        self.context.store(Arc::clone(context));
        let number = self.number.load(Ordering::Acquire);
        self.in_flight.attach(number, context, params);
    }
}

impl MessageHandler for RequestMessageHandler {
    fn handle(&self, message: ServerMessage) {
        let in_flight = self.in_flight_request();
        self.dispatcher().dispatch(Some(&in_flight), message);
    }

    fn on_stream_started(&self) {
        self.context.load().sender.mark_streamed();
    }

    fn on_stream_interrupted(&self) {
        self.context.load().sender.mark_interrupted();
    }
}

/// Creates audiences for new links.
#[derive(Debug)]
pub struct GatewayUpstreamObserver(pub(crate) Weak<GatewayInner>);

impl UpstreamObserver for GatewayUpstreamObserver {
    fn audience(&self, upstream: &Arc<Upstream>, key: &LinkKey) -> Arc<dyn MessageHandler> {
        Arc::new(LinkMessageHandler {
            gateway: self.0.clone(),
            server: upstream.name().into(),
            key: key.clone(),
        })
    }

    fn changed(&self, upstream: &Arc<Upstream>, what: UpstreamChange) {
        let Some(shared) = self.0.upgrade() else {
            return;
        };
        let gateway = Gateway { shared };
        let Some(catalog) = gateway.server_catalog(upstream.name()) else {
            return;
        };
        if let UpstreamChange::Connected { key } = &what {
            gateway.restore_session(&catalog, key);
        }
        match what {
            // A new connection may be to a new version of the server.
            UpstreamChange::Connected { key: LinkKey::Main } => {
                catalog.mark_tools_stale();
                if upstream
                    .description()
                    .is_some_and(|it| it.era == Era::Stateless)
                {
                    gateway.open_list_stream(&catalog);
                }
                gateway.refresh_in_background(catalog);
            }
            // The server that replaces it may be a new version.
            UpstreamChange::Lost { key, unused, .. } => {
                if !unused {
                    catalog.mark_tools_stale();
                }
                if let LinkKey::Conversation(conversation) = &key {
                    catalog.forget_conversation(conversation);
                }
                let server = upstream.server_name();
                gateway.shared.in_flight_requests.drop_link(server, &key);
            }
            UpstreamChange::Health => gateway.publish_health_change(upstream),
            UpstreamChange::Connected { .. } => {}
        }
    }
}

impl Gateway {
    /// The receiver of messages over a link that belong to no request.
    pub(super) fn link_message_handler(
        &self,
        catalog: &ServerCatalog,
        key: &LinkKey,
    ) -> Arc<dyn MessageHandler> {
        Arc::new(LinkMessageHandler {
            gateway: Arc::downgrade(&self.shared),
            server: catalog.upstream.name().into(),
            key: key.clone(),
        })
    }
}

/// Receives messages of a link's server that belong to no request.
#[derive(Debug)]
struct LinkMessageHandler {
    gateway: Weak<GatewayInner>,
    server: Arc<str>,
    key: LinkKey,
}

impl MessageHandler for LinkMessageHandler {
    fn handle(&self, message: ServerMessage) {
        let Some(shared) = self.gateway.upgrade() else {
            return;
        };
        let gateway = Gateway { shared };
        let Some(catalog) = gateway.server_catalog(&self.server) else {
            return;
        };
        let flights = gateway.in_flight_on(&catalog, &self.key);
        let hearer = ServerMessageDispatcher {
            gateway: &gateway,
            catalog: &catalog,
            key: &self.key,
            in_flight: &flights,
        };
        // On a shared channel a message does not name its request, so it is attributed only if there is just one.
        let only = flights.only_request();
        hearer.dispatch(only.as_ref(), message);
    }
}

struct ServerMessageDispatcher<'h> {
    gateway: &'h Gateway,
    catalog: &'h Arc<ServerCatalog>,
    key: &'h LinkKey,
    in_flight: &'h Arc<InFlightRequests>,
}

impl ServerMessageDispatcher<'_> {
    fn dispatch(&self, in_flight: Option<&InFlightRequest>, message: ServerMessage) {
        match message {
            ServerMessage::Notification { method, params } => {
                self.handle_notification(in_flight, &method, params.as_deref());
            }
            ServerMessage::Request { id, method, params } => {
                self.handle_request(in_flight, ServerRequest { id, method, params });
            }
        }
    }

    fn handle_notification(
        &self,
        in_flight: Option<&InFlightRequest>,
        method: &str,
        params: Option<&RawValue>,
    ) {
        match method {
            "notifications/tools/list_changed" => {
                self.catalog.mark_tools_stale();
                self.gateway
                    .refresh_and_notify(Arc::clone(self.catalog), self.key.clone());
            }
            // From here on the server notifies of changes; a fresh list shows earlier ones.
            "notifications/subscriptions/acknowledged" => {
                self.catalog.mark_tools_stale();
                self.gateway.refresh_in_background(Arc::clone(self.catalog));
            }
            "notifications/prompts/list_changed" => self.handle_list_change(&[ListKind::Prompts]),
            "notifications/resources/list_changed" => {
                self.handle_list_change(&[ListKind::Resources, ListKind::Templates]);
            }
            "notifications/resources/updated" => {
                self.handle_resource_update(params);
            }
            "notifications/progress" => self.handle_progress(params),
            "notifications/cancelled" => self.handle_cancellation(params),
            method => self.forward_notification(in_flight, method, params),
        }
    }

    /// Passes on resource updates. Over its own link an agent gets every update that the server sends, also for
    /// parts of the resource it subscribed to.
    fn handle_resource_update(&self, params: Option<&RawValue>) {
        let own = match self.key {
            LinkKey::Conversation(_) => self.conversation(),
            LinkKey::Main | LinkKey::Variant(_) => None,
        };
        match own.filter(|it| it.era() == Era::Handshake) {
            Some(conversation) => {
                let members = RawObject::parse_optional(params);
                let uri = members.text("uri").unwrap_or_default();
                let server = self.catalog.upstream.name();
                let subscription = conversation.subscription(&uri, server);
                let (shown, with) = subscription.unwrap_or_else(|| {
                    let with = conversation.server_subscription_context(server);
                    (uri.clone().into_owned(), with)
                });
                if !self
                    .gateway
                    .may_still_read(&conversation, self.catalog, &uri, with)
                {
                    return;
                }
                let params = with_shown_uri(params, (&uri, &shown));
                conversation
                    .standalone_stream
                    .push(notification(RESOURCE_UPDATED, params.as_deref()));
            }
            None => self.gateway.notify_resource_updated(self.catalog, params),
        }
    }

    fn handle_list_change(&self, kinds: &[ListKind]) {
        for kind in kinds {
            self.catalog.forget_lists(*kind);
        }
        if let Some(kind) = kinds.first() {
            self.gateway.notify_coalesced(self.catalog, self.key, *kind);
        }
    }

    fn handle_progress(&self, params: Option<&RawValue>) {
        let Some(progress) = self.in_flight.match_progress(params) else {
            return;
        };
        if let Some(id) = progress.id {
            self.catalog.upstream.extend_timeout(self.key, id);
        }
        let text = notification("notifications/progress", Some(&progress.params));
        progress.context.sender.send(text);
    }

    /// Handles a server that cancels its own request.
    fn handle_cancellation(&self, params: Option<&RawValue>) {
        let params = RawObject::parse_optional(params);
        let Some(given_up) = params
            .get("requestId")
            .and_then(|id| self.in_flight.cancel_server_request(id))
        else {
            return;
        };
        let mut told = params.clone();
        told.set("requestId", given_up.id.to_string());
        let told = told.to_raw();
        let text = notification("notifications/cancelled", Some(&told));
        if !given_up.sender.is_some_and(|it| it.send(text.clone())) {
            given_up.conversation.standalone_stream.push(text);
        }
    }

    fn forward_notification(
        &self,
        in_flight: Option<&InFlightRequest>,
        method: &str,
        params: Option<&RawValue>,
    ) {
        let shown = self.gateway.with_shown_task(self.catalog, params);
        let params = shown.as_deref().or(params);
        let text = notification(method, params);
        let log = method == "notifications/message";
        match in_flight {
            Some(in_flight) if in_flight.wants(method, log, params) => {
                if !in_flight.context.sender.send(text.clone())
                    && in_flight.context.agent.accepts_requests()
                {
                    in_flight.context.conversation.standalone_stream.push(text);
                }
            }
            Some(_) => {}
            None => {
                if let Some(conversation) = self.conversation()
                    && conversation.era() == Era::Handshake
                {
                    conversation.standalone_stream.push(text);
                }
            }
        }
    }

    fn handle_request(&self, in_flight: Option<&InFlightRequest>, ask: ServerRequest) {
        if ask.method == "ping" {
            self.respond(ask.id, Ok(empty_object()));
            return;
        }
        let conversation = in_flight
            .map(|in_flight| Arc::clone(&in_flight.context.conversation))
            .or_else(|| self.conversation());
        let Some(conversation) = conversation else {
            let why = "no agent can be asked: no agent request is in flight on this connection";
            self.respond(ask.id, Err(refusal_error(why)));
            return;
        };
        if let Some(question_sender) =
            in_flight.and_then(|in_flight| in_flight.question_sender.as_ref())
        {
            let id = ask.id.clone();
            if question_sender.try_send(ask).is_err() {
                self.respond(id, Err(refusal_error("the agent no longer waits")));
            }
            return;
        }
        if conversation.era() == Era::Stateless {
            let why = format!("the agent cannot be asked for `{}`", ask.method);
            self.respond(ask.id, Err(refusal_error(&why)));
            return;
        }
        self.forward_request(in_flight, &conversation, ask);
    }

    /// Sends a request of the server to the agent, and returns the response to the server.
    fn forward_request(
        &self,
        in_flight: Option<&InFlightRequest>,
        conversation: &Arc<Conversation>,
        ask: ServerRequest,
    ) {
        let most = self.catalog.upstream.settings().limits.open_requests.get();
        let place = self
            .in_flight
            .request_slot(usize::try_from(most).unwrap_or(usize::MAX));
        let Some(place) = place else {
            let why = format!("{most} requests of this server already wait for agents");
            self.respond(ask.id, Err(refusal_error(&why)));
            return;
        };
        let shown = self
            .gateway
            .with_shown_task(self.catalog, ask.params.as_deref());
        let params = shown.or(ask.params);
        let sender = in_flight.map(|in_flight| in_flight.context.sender.clone());
        let pending = conversation.ask(sender.as_ref(), &ask.method, params.as_deref());
        let number = pending.id();
        let (upstream, key) = (Arc::clone(&self.catalog.upstream), self.key.clone());
        let id = ask.id.clone();
        let flights = Arc::clone(self.in_flight);
        // A request made for a call is useless once the call has ended, and frees its place for others.
        let end_signal = in_flight.and_then(|in_flight| in_flight.end_signal.clone());
        let end_signal = async move {
            match end_signal {
                Some(mut end_signal) => while end_signal.changed().await.is_ok() {},
                None => std::future::pending().await,
            }
        };
        let waiting = tokio::spawn(async move {
            let _place = place;
            let answer = tokio::select! {
                answer = tokio::time::timeout(AGENT_RESPONSE_TIMEOUT, pending.answer()) => Some(answer),
                () = end_signal => None,
            };
            flights.remove_server_request(id.get());
            let outcome = match answer {
                Some(Ok(Some(outcome))) => outcome,
                Some(Ok(None)) => Err(refusal_error("the agent disconnected")),
                Some(Err(_elapsed)) => Err(refusal_error("the agent did not answer in time")),
                None => Err(refusal_error("the request that it belongs to has ended")),
            };
            respond_to_server(&upstream, &key, &id, outcome).await;
        });
        let waits = waiting.abort_handle();
        self.in_flight
            .add_server_request(ask.id.get(), waits, number, conversation, sender);
    }

    fn respond(&self, id: Box<RawValue>, outcome: Result<Box<RawValue>, RpcError>) {
        // A server that does not read its input loses the response.
        let Some(place) = self.in_flight.response_slot() else {
            return;
        };
        let (upstream, key) = (Arc::clone(&self.catalog.upstream), self.key.clone());
        tokio::spawn(async move {
            let _place = place;
            respond_to_server(&upstream, &key, &id, outcome).await;
        });
    }

    /// The conversation that owns the link.
    fn conversation(&self) -> Option<Arc<Conversation>> {
        match self.key {
            LinkKey::Conversation(id) => self.gateway.conversations().find(id, self.gateway.now()),
            LinkKey::Main => self.gateway.only_conversation(),
            LinkKey::Variant(_) => None,
        }
    }
}

fn refusal_error(why: &str) -> RpcError {
    RpcError {
        code: METHOD_NOT_FOUND,
        message: why.to_owned(),
        data: None,
    }
}

/// Sends the response to a server's request. If it cannot be sent, the server's own request fails, and that
/// failure is reported.
pub(super) async fn respond_to_server(
    upstream: &Upstream,
    key: &LinkKey,
    id: &RawValue,
    outcome: Result<Box<RawValue>, RpcError>,
) {
    let outcome = outcome.as_ref().map(|result| &**result);
    drop(upstream.answer(key, id, outcome).await);
}
