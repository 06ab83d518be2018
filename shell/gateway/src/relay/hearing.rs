//! What servers send besides answers, and which agent it is for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use toolwarden_mcp::codes::METHOD_NOT_FOUND;
use toolwarden_mcp::serve::answer::notification;
use toolwarden_mcp::{Audience, Era, FromServer, Members, RpcError};

use super::asked::Asked;
use super::exchange::Outgoing;
use super::flights::{Departed, Flight, Flights};
use super::tell::{UPDATED, with_uri};
use crate::agent::nothing;
use crate::catalogue::{Kind, Shelf};
use crate::conversation::Conversation;
use crate::gateway::{Gateway, Shared};
use crate::upstream::{Hearing, LinkKey, Upstream, UpstreamChange};

/// How long an agent may take to answer what a server asks: people are asked, too.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);

/// A request of a server that waits for an agent without a way to be asked.
#[derive(Debug)]
pub(super) struct ServerAsk {
    pub(super) id: Box<RawValue>,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
}

/// Hears a server while it answers one request of an agent.
#[derive(Debug)]
pub(super) struct Aside {
    gateway: Gateway,
    shelf: Arc<Shelf>,
    key: LinkKey,
    asked: ArcSwap<Asked>,
    /// The request's number among those under way; 0 before it departs.
    number: AtomicU64,
    flights: Arc<Flights>,
    parking: Option<mpsc::Sender<ServerAsk>>,
    /// Dropped when the request is over.
    under_way: watch::Sender<()>,
}

impl Aside {
    pub(super) fn new(gateway: &Gateway, outgoing: &Outgoing, asked: &Arc<Asked>) -> Self {
        let key = outgoing.looking.key.clone();
        Self {
            gateway: gateway.clone(),
            shelf: Arc::clone(&outgoing.shelf),
            flights: outgoing.shelf.flights(&key),
            key,
            asked: ArcSwap::new(Arc::clone(asked)),
            number: AtomicU64::new(0),
            parking: None,
            under_way: watch::Sender::new(()),
        }
    }

    /// As it is, for an agent that is told to ask again with what the server wants to know.
    pub(super) fn parking(mut self, asks: mpsc::Sender<ServerAsk>) -> Self {
        self.parking = Some(asks);
        self
    }

    /// Notes that the request is on its way; its progress token is made ours, so that no two are alike.
    pub(super) fn depart<'p>(
        &self,
        params: Option<&'p RawValue>,
    ) -> (Option<std::borrow::Cow<'p, RawValue>>, Departed) {
        let (params, departed) = self.flights.depart(self.flight(), params);
        self.number.store(departed.number(), Ordering::Release);
        (params, departed)
    }

    /// Hears the server for a later request of the same agent, which goes on with this one.
    pub(super) fn hand_over(&self, asked: &Arc<Asked>, params: Option<&RawValue>) {
        self.asked.store(Arc::clone(asked));
        let number = self.number.load(Ordering::Acquire);
        self.flights.hand_over(number, asked, params);
    }

    /// For whom the request is sent.
    pub(super) fn principal(&self) -> Arc<str> {
        Arc::clone(&self.asked.load().conversation.principal)
    }

    fn flight(&self) -> Flight {
        Flight {
            asked: self.asked.load_full(),
            parking: self.parking.clone(),
            over: Some(self.under_way.subscribe()),
        }
    }

    fn hearer(&self) -> Hearer<'_> {
        Hearer {
            gateway: &self.gateway,
            shelf: &self.shelf,
            key: &self.key,
            flights: &self.flights,
        }
    }
}

impl Audience for Aside {
    fn hear(&self, message: FromServer) {
        let flight = self.flight();
        self.hearer().hear(Some(&flight), message);
    }

    fn streamed(&self) {
        self.asked.load().outlet.mark_streamed();
    }

    fn interrupted(&self) {
        self.asked.load().outlet.mark_interrupted();
    }
}

/// Makes audiences for new links.
#[derive(Debug)]
pub struct GatewayHearing(pub(crate) Weak<Shared>);

impl Hearing for GatewayHearing {
    fn audience(&self, upstream: &Arc<Upstream>, key: &LinkKey) -> Arc<dyn Audience> {
        Arc::new(LinkAudience {
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
        let Some(shelf) = gateway.shelf(upstream.name()) else {
            return;
        };
        if let UpstreamChange::Connected { key } = &what {
            gateway.restore(&shelf, key);
        }
        match what {
            // A new connection may be to a new version of the server.
            UpstreamChange::Connected { key: LinkKey::Main } => {
                shelf.tools_changed();
                if upstream
                    .description()
                    .is_some_and(|it| it.era == Era::Stateless)
                {
                    gateway.listen_for_lists(&shelf);
                }
                gateway.look_soon(shelf);
            }
            // Whatever comes in its place may be a new version of the server.
            UpstreamChange::Lost { key, unused, .. } => {
                if !unused {
                    shelf.tools_changed();
                }
                if let LinkKey::Of(conversation) = &key {
                    shelf.forget_session(conversation);
                }
                shelf.drop_flights(&key);
            }
            UpstreamChange::Health => gateway.fares_otherwise(upstream),
            UpstreamChange::Connected { .. } => {}
        }
    }
}

impl Gateway {
    /// Whoever hears what a server sends over a link that belongs to no request.
    pub(super) fn audience_of(&self, shelf: &Shelf, key: &LinkKey) -> Arc<dyn Audience> {
        Arc::new(LinkAudience {
            gateway: Arc::downgrade(&self.shared),
            server: shelf.upstream.name().into(),
            key: key.clone(),
        })
    }
}

/// Hears what a link's server sends that belongs to no request.
#[derive(Debug)]
struct LinkAudience {
    gateway: Weak<Shared>,
    server: Arc<str>,
    key: LinkKey,
}

impl Audience for LinkAudience {
    fn hear(&self, message: FromServer) {
        let Some(shared) = self.gateway.upgrade() else {
            return;
        };
        let gateway = Gateway { shared };
        let Some(shelf) = gateway.shelf(&self.server) else {
            return;
        };
        let flights = shelf.flights(&self.key);
        let hearer = Hearer {
            gateway: &gateway,
            shelf: &shelf,
            key: &self.key,
            flights: &flights,
        };
        // On a shared channel nobody says which request a message belongs to, unless there is but one.
        let only = flights.only();
        hearer.hear(only.as_ref(), message);
    }
}

struct Hearer<'h> {
    gateway: &'h Gateway,
    shelf: &'h Arc<Shelf>,
    key: &'h LinkKey,
    flights: &'h Arc<Flights>,
}

impl Hearer<'_> {
    fn hear(&self, flight: Option<&Flight>, message: FromServer) {
        match message {
            FromServer::Notification { method, params } => {
                self.notified(flight, &method, params.as_deref());
            }
            FromServer::Request { id, method, params } => {
                self.asked(flight, ServerAsk { id, method, params });
            }
        }
    }

    fn notified(&self, flight: Option<&Flight>, method: &str, params: Option<&RawValue>) {
        match method {
            "notifications/tools/list_changed" => {
                self.shelf.tools_changed();
                self.gateway
                    .look_and_pass_on(Arc::clone(self.shelf), self.key.clone());
            }
            // From here on the server tells; what changed before is seen by looking.
            "notifications/subscriptions/acknowledged" => {
                self.shelf.tools_changed();
                self.gateway.look_soon(Arc::clone(self.shelf));
            }
            "notifications/prompts/list_changed" => self.list_changed(&[Kind::Prompts]),
            "notifications/resources/list_changed" => {
                self.list_changed(&[Kind::Resources, Kind::Templates]);
            }
            "notifications/resources/updated" => {
                self.updated(params);
            }
            "notifications/progress" => self.progressed(params),
            "notifications/cancelled" => self.cancelled(params),
            method => self.forward(flight, method, params),
        }
    }

    /// Over its own link an agent hears whatever the server tells of: also of parts of what it asked for.
    fn updated(&self, params: Option<&RawValue>) {
        let own = match self.key {
            LinkKey::Of(_) => self.conversation(),
            LinkKey::Main | LinkKey::Variant(_) => None,
        };
        match own.filter(|it| it.era() == Era::Handshake) {
            Some(conversation) => {
                let members = Members::of_optional(params);
                let uri = members.text("uri").unwrap_or_default();
                let server = self.shelf.upstream.name();
                let subscription = conversation.subscription(&uri, server);
                let (shown, with) = subscription.unwrap_or_else(|| {
                    let with = conversation.subscribed_with(server);
                    (uri.clone().into_owned(), with)
                });
                if !self
                    .gateway
                    .may_still_read(&conversation, self.shelf, &uri, with)
                {
                    return;
                }
                let params = with_uri(params, (&uri, &shown));
                conversation
                    .standing
                    .push(notification(UPDATED, params.as_deref()));
            }
            None => self.gateway.tell_updated(self.shelf, params),
        }
    }

    fn list_changed(&self, kinds: &[Kind]) {
        for kind in kinds {
            self.shelf.forget(*kind);
        }
        if let Some(kind) = kinds.first() {
            self.gateway.pass_on(self.shelf, self.key, *kind);
        }
    }

    fn progressed(&self, params: Option<&RawValue>) {
        let Some(progress) = self.flights.progressed(params) else {
            return;
        };
        if let Some(id) = progress.id {
            self.shelf.upstream.keep_waiting(self.key, id);
        }
        let text = notification("notifications/progress", Some(&progress.params));
        progress.asked.outlet.send(text);
    }

    /// The server gives up what it asked.
    fn cancelled(&self, params: Option<&RawValue>) {
        let params = Members::of_optional(params);
        let Some(given_up) = params
            .get("requestId")
            .and_then(|id| self.flights.give_up(id))
        else {
            return;
        };
        let mut told = params.clone();
        told.set("requestId", given_up.id.to_string());
        let told = told.to_raw();
        let text = notification("notifications/cancelled", Some(&told));
        if !given_up
            .asked_outlet
            .is_some_and(|it| it.send(text.clone()))
        {
            given_up.conversation.standing.push(text);
        }
    }

    fn forward(&self, flight: Option<&Flight>, method: &str, params: Option<&RawValue>) {
        let shown = self.gateway.with_shown_task(self.shelf, params);
        let params = shown.as_deref().or(params);
        let text = notification(method, params);
        let log = method == "notifications/message";
        match flight {
            Some(flight) if flight.wants(method, log, params) => {
                if !flight.asked.outlet.send(text.clone()) && flight.asked.agent.answers_requests()
                {
                    flight.asked.conversation.standing.push(text);
                }
            }
            Some(_) => {}
            None => {
                if let Some(conversation) = self.conversation()
                    && conversation.era() == Era::Handshake
                {
                    conversation.standing.push(text);
                }
            }
        }
    }

    fn asked(&self, flight: Option<&Flight>, ask: ServerAsk) {
        if ask.method == "ping" {
            self.answer(ask.id, Ok(nothing()));
            return;
        }
        let conversation = flight
            .map(|flight| Arc::clone(&flight.asked.conversation))
            .or_else(|| self.conversation());
        let Some(conversation) = conversation else {
            let why = "nobody can be asked: no request of an agent is under way on this connection";
            self.answer(ask.id, Err(refusal(why)));
            return;
        };
        if let Some(parking) = flight.and_then(|flight| flight.parking.as_ref()) {
            let id = ask.id.clone();
            if parking.try_send(ask).is_err() {
                self.answer(id, Err(refusal("the agent does not wait any more")));
            }
            return;
        }
        if conversation.era() == Era::Stateless {
            let why = format!("the agent cannot be asked for `{}`", ask.method);
            self.answer(ask.id, Err(refusal(&why)));
            return;
        }
        self.put(flight, &conversation, ask);
    }

    /// Puts a request of the server to the agent, and the answer back.
    fn put(&self, flight: Option<&Flight>, conversation: &Arc<Conversation>, ask: ServerAsk) {
        let most = self.shelf.upstream.settings().limits.open_requests.get();
        let place = self
            .flights
            .place_for_request(usize::try_from(most).unwrap_or(usize::MAX));
        let Some(place) = place else {
            let why = format!("{most} requests of this server wait for agents already");
            self.answer(ask.id, Err(refusal(&why)));
            return;
        };
        let shown = self
            .gateway
            .with_shown_task(self.shelf, ask.params.as_deref());
        let params = shown.or(ask.params);
        let outlet = flight.map(|flight| flight.asked.outlet.clone());
        let pending = conversation.ask(outlet.as_ref(), &ask.method, params.as_deref());
        let number = pending.id();
        let (upstream, key) = (Arc::clone(&self.shelf.upstream), self.key.clone());
        let id = ask.id.clone();
        let flights = Arc::clone(self.flights);
        // What is asked for a call is of no use once the call has ended, and leaves its place to others.
        let over = flight.and_then(|flight| flight.over.clone());
        let over = async move {
            match over {
                Some(mut over) => while over.changed().await.is_ok() {},
                None => std::future::pending().await,
            }
        };
        let waiting = tokio::spawn(async move {
            let _place = place;
            let answer = tokio::select! {
                answer = tokio::time::timeout(ANSWER_WITHIN, pending.answer()) => Some(answer),
                () = over => None,
            };
            flights.answered(id.get());
            let outcome = match answer {
                Some(Ok(Some(outcome))) => outcome,
                Some(Ok(None)) => Err(refusal("the agent left")),
                Some(Err(_elapsed)) => Err(refusal("the agent did not answer in time")),
                None => Err(refusal("the request that it belongs to has ended")),
            };
            send_answer(&upstream, &key, &id, outcome).await;
        });
        let waits = waiting.abort_handle();
        self.flights
            .asking(ask.id.get(), waits, number, conversation, outlet);
    }

    fn answer(&self, id: Box<RawValue>, outcome: Result<Box<RawValue>, RpcError>) {
        // A server that does not read its input loses its answer.
        let Some(place) = self.flights.place_for_answer() else {
            return;
        };
        let (upstream, key) = (Arc::clone(&self.shelf.upstream), self.key.clone());
        tokio::spawn(async move {
            let _place = place;
            send_answer(&upstream, &key, &id, outcome).await;
        });
    }

    /// Whose link it is.
    fn conversation(&self) -> Option<Arc<Conversation>> {
        match self.key {
            LinkKey::Of(id) => self.gateway.conversations().find(id, self.gateway.now()),
            LinkKey::Main => self.gateway.only_conversation(),
            LinkKey::Variant(_) => None,
        }
    }
}

fn refusal(why: &str) -> RpcError {
    RpcError {
        code: METHOD_NOT_FOUND,
        message: why.to_owned(),
        data: None,
    }
}

/// Sends the answer to what a server asked. Where it cannot be sent, the server's own request fails,
/// and that is told.
pub(super) async fn send_answer(
    upstream: &Upstream,
    key: &LinkKey,
    id: &RawValue,
    outcome: Result<Box<RawValue>, RpcError>,
) {
    let outcome = outcome.as_ref().map(|result| &**result);
    drop(upstream.answer(key, id, outcome).await);
}
