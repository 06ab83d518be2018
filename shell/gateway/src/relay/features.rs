//! Requests about anything but tools: decided, recorded and settled as calls are.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolwarden_guard::{Code, Denial, Feature, FeatureKind};
use toolwarden_mcp::{Era, Members};
use toolwarden_warden::guard::{Call, OpenCall};
use toolwarden_warden::settings::PrefixMode;

use super::asked::{Asked, STATE_KEY};
use super::denial::{denied_feature, unavailable};
use super::exchange::{Exchanged, Outgoing};
use super::parking::Parked;
use super::pass::not_an_object;
use super::result::{Looked, cacheable, is_object, look};
use super::{Gateway, Reply};
use crate::catalogue::{Kind, Shelf};
use crate::metrics::Stage;

/// What a request uses, as the guard decides it.
#[derive(Clone, Debug)]
pub(super) struct Used<'u> {
    pub(super) kind: FeatureKind,
    pub(super) method: &'u str,
    /// The server's own address, or the name that agents see.
    pub(super) name: String,
    pub(super) aliases: Vec<String>,
    /// The server that offers it; none where no server does.
    pub(super) server: Option<Arc<str>>,
    /// Why it is withheld, where it is.
    pub(super) withheld: Option<&'static str>,
    /// The skills it belongs to.
    pub(super) skills: Vec<Arc<str>>,
}

/// Why a request goes no further.
pub(super) enum Refusal {
    /// It cannot be read.
    Invalid(Reply),
    /// The guard refuses it.
    Denied(Denial),
}

impl<'u> Used<'u> {
    pub(super) fn new(kind: FeatureKind, method: &'u str, name: &str) -> Self {
        Self {
            kind,
            method,
            name: name.to_owned(),
            aliases: Vec::new(),
            server: None,
            withheld: None,
            skills: Vec::new(),
        }
    }

    pub(super) fn at(self, shelf: &Shelf) -> Self {
        Self {
            server: Some(shelf.upstream.name().into()),
            withheld: shelf.is_blocked().then_some(BLOCKED),
            ..self
        }
    }

    /// As a list of its server has it, under its server's own name or address.
    pub(super) fn listed(self, shelf: &Shelf, kinds: &[Kind], key: &str) -> Self {
        let used = self.at(shelf);
        let is_withheld = || kinds.iter().any(|kind| shelf.withholds(*kind, key));
        let withheld = used.withheld.or_else(|| is_withheld().then_some(WAITING));
        Self { withheld, ..used }
    }

    pub(super) fn feature(&self) -> Feature<'_> {
        Feature {
            kind: self.kind,
            name: &self.name,
            aliases: &self.aliases,
            server: self.server.as_deref(),
            withheld: self.withheld,
            skills: &self.skills,
            method: self.method,
        }
    }
}

/// Why something is not served that a list withholds.
const WAITING: &str = "its entry in the list of its server waits for approval";

/// Why nothing of a server is served whose tools drifted.
const BLOCKED: &str = "its server is blocked until its changes are approved";

impl Refusal {
    /// The answer. Of what is not offered, or hidden by the policy, it is the same.
    pub(super) fn into_reply(self, unknown: impl FnOnce() -> Reply) -> Reply {
        match self {
            Self::Invalid(reply) => reply,
            Self::Denied(denial) if denial.code == Code::NotOffered => unknown(),
            Self::Denied(denial) => denied_feature(&denial),
        }
    }
}

impl Gateway {
    /// Decides a request, and waits until the decision is as durable as the policy asks for.
    pub(super) async fn permit(
        &self,
        asked: &Asked,
        params: &Members<'_>,
        used: &Used<'_>,
        arguments: Value,
    ) -> Result<OpenCall, Refusal> {
        let meta = params.object("_meta");
        let attributes = self.attributes(asked, meta.as_ref());
        let state = meta.as_ref().and_then(|meta| meta.text(STATE_KEY));
        let mut call = Call {
            feature: Some(used.feature()),
            principal: &asked.conversation.principal,
            session: asked.session(),
            state: state.as_deref(),
            arguments: Arc::new(arguments),
            attributes: attributes.map_err(Refusal::Invalid)?,
            claims: asked.claims.as_deref(),
            ..Call::default()
        };
        self.ask_for_groups(asked, meta.as_ref(), &mut call, denied_feature)
            .map_err(Refusal::Invalid)?;
        self.report_load();
        let began = self.now();
        let deciding = self.shared.guard.decide_soon(&call);
        let weighed = self.now();
        self.count_stage(Stage::Decide, weighed.saturating_sub(began));
        let decided = deciding.decided().await;
        self.count_stage(Stage::Record, self.now().saturating_sub(weighed));
        decided.map_err(Refusal::Denied)
    }

    /// Which of these an agent sees.
    ///
    /// # Errors
    /// It asks for groups that it may not ask for.
    pub(super) fn seen<'u>(
        &self,
        asked: &Asked,
        params: &Members<'_>,
        used: impl IntoIterator<Item = &'u Used<'u>>,
    ) -> Result<Vec<bool>, Reply> {
        let meta = params.object("_meta");
        let state = meta.as_ref().and_then(|meta| meta.text(STATE_KEY));
        let mut call = Call {
            principal: &asked.conversation.principal,
            session: asked.session(),
            state: state.as_deref(),
            attributes: self.attributes(asked, meta.as_ref())?,
            claims: asked.claims.as_deref(),
            ..Call::default()
        };
        self.ask_for_groups(asked, meta.as_ref(), &mut call, denied_feature)?;
        self.report_load();
        let features = used.into_iter().map(Used::feature);
        let seen = self.shared.guard.visible(&call, features);
        seen.map_err(|denial| denied_feature(&denial))
    }

    /// Puts a permitted request to its server, and records how it ends. `check` makes of the result what
    /// the agent gets, or withholds it.
    pub(super) async fn ask_permitted(
        &self,
        asked: &Arc<Asked>,
        (shelf, method): (&Arc<Shelf>, &str),
        params: Option<Box<RawValue>>,
        open: OpenCall,
        check: impl FnOnce(String) -> Result<String, Reply>,
    ) -> Reply {
        let outgoing = match self.outgoing(asked, shelf, method, None).await {
            Ok(outgoing) => Outgoing { params, ..outgoing },
            Err(reply) => return failed(open, reply).await,
        };
        let began = self.now();
        let (open, exchanged) = self.exchange_call(asked, outgoing, open).await;
        self.count_stage(Stage::Upstream, self.now().saturating_sub(began));
        self.ended(asked, method, (open, exchanged), check).await
    }

    /// Goes on with a request for which the agent was asked, where it says that it is one and what waits
    /// is the same. It was decided when it began.
    pub(super) async fn resumed(
        &self,
        asked: &Arc<Asked>,
        (method, params): (&str, Option<&RawValue>),
        state: &str,
        is_same: impl Fn(&Parked) -> bool,
        check: impl FnOnce(String) -> Result<String, Reply>,
    ) -> Reply {
        let resumed = self.resume(asked, method, params, state, is_same).await;
        match resumed {
            Ok(resumed) => {
                let end = (resumed.open, resumed.exchanged);
                self.ended(asked, method, end, check).await
            }
            Err(reply) => reply,
        }
    }

    async fn ended(
        &self,
        asked: &Asked,
        method: &str,
        end: (Option<OpenCall>, Exchanged),
        check: impl FnOnce(String) -> Result<String, Reply>,
    ) -> Reply {
        let (open, exchanged) = match end {
            (Some(open), exchanged) => (open, exchanged),
            (None, Exchanged::Parked(reply)) => return reply,
            (None, _) => return Reply::Nothing,
        };
        let result = match exchanged {
            Exchanged::Answered(Ok(result)) => result,
            Exchanged::Answered(Err(error)) => return failed(open, Reply::Error(error)).await,
            Exchanged::Failed(error) => return failed(open, unavailable(&error)).await,
            Exchanged::Parked(reply) => {
                open.suspended_soon().settled().await.ok();
                return reply;
            }
        };
        if !is_object(result.get()) {
            return failed(open, not_an_object(method)).await;
        }
        if look(&result) == Looked::InputRequired {
            open.suspended_soon().settled().await.ok();
            return Reply::raw(result);
        }
        match check(String::from(Box::<str>::from(result))) {
            Ok(result) => {
                open.succeeded_unseen_soon().settled().await.ok();
                Reply::Result(match asked.agent.era {
                    Era::Stateless if method == "resources/read" => cacheable(result),
                    Era::Stateless | Era::Handshake => result,
                })
            }
            Err(reply) => failed(open, reply).await,
        }
    }

    /// Other names by which rules may know something of a server that goes by names.
    pub(super) fn other_names(&self, server: &str, own: &str) -> Vec<String> {
        let settings = self.settings();
        let prefixed = format!("{server}{}{own}", settings.separator);
        match settings.prefix {
            PrefixMode::Always => vec![prefixed],
            PrefixMode::Conflict | PrefixMode::Never => vec![prefixed, own.to_owned()],
        }
    }
}

/// Records that a permitted request failed, and gives the answer.
pub(super) async fn failed(open: OpenCall, reply: Reply) -> Reply {
    let words = match &reply {
        Reply::Error(error) => format!("{} ({})", error.message, error.code),
        Reply::Result(_) | Reply::Nothing => "it was not made".to_owned(),
    };
    open.failed_soon(&words).settled().await.ok();
    reply
}

/// Members of parameters as records have them.
pub(super) fn recorded(params: &Members<'_>, keys: &[&str]) -> Value {
    let said = keys.iter().filter_map(|key| {
        let value = serde_json::from_str(params.get(key)?).unwrap_or("unreadable".into());
        Some(((*key).to_owned(), value))
    });
    Value::Object(said.collect::<Map<String, Value>>())
}
