//! Calls of tools: decided, recorded, sent, settled.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use toolwarden_mcp::codes::{HEADER_MISMATCH, INVALID_PARAMS};
use toolwarden_mcp::{Era, Members};
use toolwarden_model::json::parse;
use toolwarden_warden::guard::{Call, OpenCall};
use toolwarden_warden::inline::strip_hidden;
use toolwarden_warden::settings::PrefixMode;

use super::asked::{Asked, STATE_KEY};
use super::denial::{denied, failed, hindered};
use super::exchange::{Exchanged, Outgoing, forwarded_members};
use super::parking::Parking;
use super::result::{Looked, look};
use super::traced::trace_header;
use super::{Gateway, Reply, readable};
use crate::catalogue::{ListError, Looking, Named, Shelf, collision};
use crate::metrics::Stage;

/// Where a call goes.
pub(super) struct Route {
    pub(super) shelf: Arc<Shelf>,
    pub(super) looking: Looking,
    /// What the server calls the tool.
    pub(super) tool: Arc<str>,
    /// Why this agent's own list does not serve it, whatever the guard decides by all lists.
    withheld: Option<ListError>,
}

impl Route {
    fn served(mut self) -> Result<Self, ListError> {
        match self.withheld.take() {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }
}

/// A call of a tool as it was asked for.
pub(super) struct Called<'p> {
    pub(super) params: &'p RawValue,
    pub(super) members: Members<'p>,
    pub(super) name: Cow<'p, str>,
    pub(super) arguments: Arc<Value>,
}

impl Gateway {
    pub(super) async fn call_tool(&self, asked: &Arc<Asked>, params: Option<&RawValue>) -> Reply {
        let called = match Called::read(params) {
            Ok(called) => called,
            Err(reply) => return reply,
        };
        if let Some(state) = called.members.text("requestState")
            && Parking::is_ours(&state)
        {
            return Box::pin(self.resume_call(asked, &called, &state)).await;
        }
        // A list that is stale is looked at before anything is decided by it.
        let route = self.route(asked, &called.name).await;
        if let Some(Ok(route)) = &route
            && let Err(reply) = check_headers(asked, route, &called)
        {
            return reply;
        }
        let variant = match &route {
            Some(Ok(route)) => route.looking.variant.as_deref(),
            Some(Err(_)) | None => None,
        };
        let open = match self.decide(asked, &called, variant).await {
            Ok(open) => open,
            Err(reply) => return reply,
        };
        let form = self.settings().denials;
        let route = route.map(|route| route.and_then(Route::served));
        match route {
            Some(Ok(route)) => self.call_at(asked, &called, route, open).await,
            Some(Err(error)) => {
                let settling = open.not_sent_soon(&error);
                settling.settled().await.ok();
                match error {
                    ListError::Upstream(error) => failed(&error, form),
                    error => hindered(&format!("{error}."), "unchecked", form),
                }
            }
            None => {
                // A policy may name a tool that no server has.
                let reason = self.nowhere(&called.name);
                let settling = open.not_sent_soon(&reason);
                settling.settled().await.ok();
                hindered(&reason, "no_server", form)
            }
        }
    }

    /// Where a tool is, its list looked at again where that is due.
    async fn route(&self, asked: &Arc<Asked>, name: &str) -> Option<Result<Route, ListError>> {
        let named = match self.named(name) {
            Some(named) => named,
            None => {
                Box::pin(self.look_at_unknown(asked, name)).await;
                self.named(name)?
            }
        };
        let shelf = self.shelf(&named.server)?;
        let looked = async {
            let looking = shelf.sight(asked.client()).await?;
            let oldest = shelf.upstream.settings().watch.before_call;
            let mut list = self.tools_of(&shelf, &looking, oldest).await?;
            let directory = self.shared.directory.load();
            let variant = looking.variant.as_deref();
            if *looking.sight != *"" && directory.withheld_from(name, variant).is_some() {
                // What the gateway saw itself withholds it, too, and may be as old.
                self.look_at(&shelf, oldest).await?;
                list = self.tools_of(&shelf, &looking, None).await?;
            }
            Ok((looking, list))
        };
        let (looking, list) = match looked.await {
            Ok(looked) => looked,
            Err(error) => return Some(Err(error)),
        };
        // The look may have changed what the name means.
        let now = self.named(name)?;
        if now.server != named.server {
            return None;
        }
        Some(Ok(Route {
            shelf,
            looking,
            withheld: list.withholds(&now),
            tool: now.name,
        }))
    }

    pub(crate) fn named(&self, name: &str) -> Option<Named> {
        self.shared.directory.load().tools.find(name).cloned()
    }

    /// Looks for an agent at the servers that it has not seen yet and that may have a tool of this name: an
    /// agent need not have listed the tools before it calls one.
    async fn look_at_unknown(&self, asked: &Arc<Asked>, name: &str) {
        let settings = self.settings();
        let mut looks = Vec::new();
        for shelf in self.shelves().iter() {
            let server = shelf.upstream.name();
            let prefixed = || {
                let rest = name.strip_prefix(server);
                rest.is_some_and(|rest| rest.starts_with(&settings.separator))
            };
            let cannot = settings.prefix == PrefixMode::Always && !prefixed();
            if cannot || shelf.has_seen(asked.client()) {
                continue;
            }
            let (gateway, asked) = (self.clone(), Arc::clone(asked));
            let looked = Arc::clone(shelf);
            let look = async move { gateway.list_for(&looked, &asked).await };
            looks.push(shelf.wait_for(look));
        }
        for look in looks {
            // What goes wrong shows in the health of the server.
            drop(look.await);
        }
    }

    async fn decide(
        &self,
        asked: &Asked,
        called: &Called<'_>,
        variant: Option<&str>,
    ) -> Result<OpenCall, Reply> {
        let meta = called.members.object("_meta");
        let attributes = self.attributes(asked, meta.as_ref())?;
        let state = meta.as_ref().and_then(|meta| meta.text(STATE_KEY));
        let mut call = Call {
            tool: &called.name,
            feature: None,
            principal: &asked.conversation.principal,
            session: asked.session(),
            groups: None,
            state: state.as_deref(),
            arguments: Arc::clone(&called.arguments),
            attributes,
            variant,
            claims: asked.claims.as_deref(),
        };
        let form = self.settings().denials;
        self.ask_for_groups(asked, meta.as_ref(), &mut call, |it| denied(it, form))?;
        self.report_load();
        let began = self.now();
        let deciding = self.shared.guard.decide_soon(&call);
        let weighed = self.now();
        self.count_stage(Stage::Decide, weighed.saturating_sub(began));
        let decided = deciding.decided().await;
        self.count_stage(Stage::Record, self.now().saturating_sub(weighed));
        decided.map_err(|denial| {
            let directory = self.shared.directory.load();
            match directory.tools.refused(&called.name) {
                Some(servers) => {
                    let text = format!("{}.", collision(&called.name, servers));
                    hindered(&text, "collision", self.settings().denials)
                }
                None => denied(&denial, self.settings().denials),
            }
        })
    }

    /// Makes a permitted call.
    async fn call_at(
        &self,
        asked: &Arc<Asked>,
        called: &Called<'_>,
        route: Route,
        open: OpenCall,
    ) -> Reply {
        let Route {
            shelf,
            looking,
            tool,
            withheld: _,
        } = route;
        let renamed = (*tool != *called.name).then_some(("name", &*tool));
        let params = forwarded_members(called.params, &called.members, renamed);
        let params = Some(params.into_owned());
        let mut headers = self.param_headers(&shelf, &looking, &tool, called);
        headers.extend(trace_header(asked));
        let outgoing = Outgoing {
            shelf: Arc::clone(&shelf),
            looking,
            method: "tools/call".to_owned(),
            params,
            headers,
        };
        let began = self.now();
        let (open, exchanged) = self.exchange_call(asked, outgoing, open).await;
        let took = self.now().saturating_sub(began);
        self.count_stage(Stage::Upstream, took);
        match (open, exchanged) {
            (Some(open), exchanged) => self.settle(asked, &shelf, &tool, open, exchanged).await,
            (None, Exchanged::Parked(reply)) => reply,
            (None, _) => Reply::Nothing,
        }
    }

    /// Tells the guard how a call ended, and makes the answer of it.
    pub(super) async fn settle(
        &self,
        asked: &Arc<Asked>,
        shelf: &Arc<Shelf>,
        tool: &str,
        open: OpenCall,
        exchanged: Exchanged,
    ) -> Reply {
        let began = self.now();
        let reply = match exchanged {
            Exchanged::Answered(Ok(result)) => {
                let settled = self.settle_result(asked, shelf, tool, open, result).await;
                settled.unwrap_or_else(|withheld| withheld)
            }
            Exchanged::Answered(Err(error)) => {
                let words = format!("{} ({})", error.message, error.code);
                open.failed_soon(&words).settled().await.ok();
                Reply::Error(error)
            }
            Exchanged::Failed(error) => {
                let settling = match error.was_sent() {
                    true => open.failed_soon(&error),
                    false => open.not_sent_soon(&error),
                };
                settling.settled().await.ok();
                failed(&error, self.settings().denials)
            }
            Exchanged::Parked(reply) => {
                open.suspended_soon().settled().await.ok();
                reply
            }
        };
        self.count_stage(Stage::Settle, self.now().saturating_sub(began));
        reply
    }

    /// Tells the guard what a result says of the end of a call, and makes the answer of it.
    ///
    /// # Errors
    /// The result is withheld.
    pub(super) async fn settle_result(
        &self,
        asked: &Arc<Asked>,
        shelf: &Arc<Shelf>,
        tool: &str,
        open: OpenCall,
        mut result: Box<RawValue>,
    ) -> Result<Reply, Reply> {
        let server = shelf.upstream.name();
        match look(&result) {
            Looked::ToolError => {
                // A model reads errors, too.
                self.shared.watch.observe(server, tool, result.get().into());
                let words = error_words(&result);
                open.failed_soon(&words).settled().await.ok();
            }
            Looked::InputRequired => drop(open.suspended_soon().settled().await),
            Looked::Task => {
                result = self.with_shown_task(shelf, Some(&result)).unwrap_or(result);
                self.keep_task(asked, &result, open);
            }
            Looked::NoObject => {
                let why = "it is not a JSON object";
                open.failed_soon(&why).settled().await.ok();
                return Err(self.withheld_answer(tool, &why));
            }
            Looked::Contradictory => {
                let why = "it says that it is no answer, and has one in it";
                open.failed_soon(&why).settled().await.ok();
                return Err(self.withheld_answer(tool, &why));
            }
            Looked::Complete => {
                self.shared.watch.observe(server, tool, result.get().into());
                let moves = open.leads_to().is_some();
                let settling = if open.checks_output() {
                    open.succeeded_soon(&structured(&result))
                } else {
                    open.succeeded_unseen_soon()
                };
                if let Err(rejected) = settling.settled().await {
                    return Err(self.withheld_answer(tool, &rejected));
                }
                self.note_references(asked, shelf, result.get());
                if moves {
                    self.tell_moved(asked);
                }
            }
        }
        Ok(stripped(shelf, result))
    }

    fn withheld_answer(&self, tool: &str, why: &dyn std::fmt::Display) -> Reply {
        let text = format!(
            "The answer of `{tool}` was withheld: {why}. Go on without it, or tell the person you work for."
        );
        hindered(&text, "invalid_output", self.settings().denials)
    }

    /// What is told of a tool that no server has.
    fn nowhere(&self, name: &str) -> String {
        format!(
            "`{name}` is in the policy, but no server behind this gateway offers it. Go on without it."
        )
    }

    fn param_headers(
        &self,
        shelf: &Shelf,
        looking: &Looking,
        tool: &str,
        called: &Called<'_>,
    ) -> Vec<(String, String)> {
        if looking.era == Era::Handshake {
            return Vec::new();
        }
        let list = shelf.last_tools(&looking.sight);
        let item = list.as_ref().and_then(|list| list.tool(tool));
        let item = item.filter(|item| !item.headers.is_empty());
        item.map_or_else(Vec::new, |item| {
            item.headers.headers(called.raw_arguments().as_deref())
        })
    }
}

impl<'p> Called<'p> {
    fn raw_arguments(&self) -> Option<Box<RawValue>> {
        RawValue::from_string(self.members.get("arguments")?.to_owned()).ok()
    }

    fn read(params: Option<&'p RawValue>) -> Result<Self, Reply> {
        let invalid = |text: String| Reply::error(INVALID_PARAMS, text);
        let params = params.ok_or_else(|| invalid("params is missing".to_owned()))?;
        let members = readable(params)?;
        let name = match members.text("name") {
            Some(name) => Cow::Owned(name.into_owned()),
            None => return Err(invalid("params.name is no string".to_owned())),
        };
        let arguments = match members.get("arguments") {
            None | Some("null") => Value::Object(serde_json::Map::new()),
            Some(text) => {
                let parsed = parse(text).map_err(|error| {
                    invalid(format!("params.arguments cannot be read: {error}"))
                })?;
                // Whoever reads the other one would do something else than what was decided.
                if let Some(twice) = parsed.duplicates.first() {
                    let place = format!("params.arguments{}", twice.pointer);
                    return Err(invalid(format!("{place} is written twice")));
                }
                parsed.value
            }
        };
        Ok(Self {
            params,
            members,
            name,
            arguments: Arc::new(arguments),
        })
    }
}

/// Holds the headers of a stateless call to its arguments.
fn check_headers(asked: &Asked, route: &Route, called: &Called<'_>) -> Result<(), Reply> {
    if asked.agent.era == Era::Handshake || !asked.headers.are_there() {
        return Ok(());
    }
    let list = route.shelf.last_tools(&route.looking.sight);
    let item = list.as_ref().and_then(|list| list.tool(&route.tool));
    let Some(item) = item.filter(|item| !item.headers.is_empty()) else {
        return Ok(());
    };
    let arguments = called.raw_arguments();
    let held = item
        .headers
        .check(arguments.as_deref(), |name| asked.headers.sent(name));
    held.map_err(|message| Reply::error(HEADER_MISMATCH, message))
}

/// A result without hidden characters, where its server's are not to be seen.
pub(super) fn stripped(shelf: &Shelf, result: Box<RawValue>) -> Reply {
    if shelf.upstream.settings().watch.strip_hidden
        && let Cow::Owned(stripped) = strip_hidden(result.get())
    {
        return Reply::Result(stripped);
    }
    Reply::raw(result)
}

/// The text of a tool's error, for the log.
fn error_words(result: &RawValue) -> String {
    let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let content = result.get("content").and_then(Value::as_array);
    let mut texts = content
        .into_iter()
        .flatten()
        .filter_map(|part| part.get("text").and_then(Value::as_str));
    texts.next().unwrap_or("the tool failed").to_owned()
}

/// What a result promises to satisfy the output schema.
fn structured(result: &RawValue) -> Value {
    let members = Members::of_optional(Some(result));
    let structured = members.get("structuredContent");
    serde_json::from_str(structured.unwrap_or("null")).unwrap_or_default()
}
