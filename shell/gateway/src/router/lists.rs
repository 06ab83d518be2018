//! Lists for agents: the entries of all servers that an agent may see.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashSet;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolwarden_guard::{Availability, FeatureKind};
use toolwarden_live_guard::Call;
use toolwarden_mcp::error_codes::INVALID_PARAMS;
use toolwarden_mcp::{Era, RawObject};
use toolwarden_model::{ExposedName, OwnName, ServerName};
use toolwarden_watch::inline::strip_hidden;

use super::error_replies::denied_reply;
use super::features::FeatureRequest;
use super::resources::{qualified_uri, shared_addresses};
use super::result_kind::with_private_cache;
use super::skill_files::SkillFiles;
use super::{Gateway, RpcReply};
use crate::catalog::{
    ListError, ListKind, NamingRules, OfferedNames, ServerCatalog, ServerList, ServerToolList,
    ShownNames, ToolItem,
};
use crate::request_context::{RequestContext, state_from_meta};
use toolwarden_settings::DenialForm;

/// The key under which an empty list says why it is empty.
const EMPTY_KEY: &str = "toolwarden/empty";
/// The prefix of the gateway's own page cursors.
const CURSOR_PREFIX: &str = "tw-";

impl Gateway {
    pub(super) async fn list(
        &self,
        context: &Arc<RequestContext>,
        kind: ListKind,
        params: Option<&RawValue>,
    ) -> RpcReply {
        let members = RawObject::parse_optional(params);
        let from = match parse_cursor(&members) {
            Ok(from) => from,
            Err(reply) => return reply,
        };
        let (texts, empty_list_reason) = match kind {
            ListKind::Tools => match self.visible_tools(context, &members).await {
                Ok(found) => found,
                Err(reply) => return reply,
            },
            kind => match self.visible_feature_items(context, kind, &members).await {
                Ok(texts) => (texts, None),
                Err(reply) => return reply,
            },
        };
        let size = self.settings().page_size.map_or(usize::MAX, |size| {
            usize::try_from(size.get()).unwrap_or(usize::MAX)
        });
        let page = texts.iter().skip(from).take(size);
        let mut result = format!("{{\"{}\":[", kind.member());
        for (at, text) in page.enumerate() {
            if at > 0 {
                result.push(',');
            }
            result.push_str(text);
        }
        result.push(']');
        let next = from.saturating_add(size);
        if next < texts.len() {
            result.push_str(&format!(",\"nextCursor\":\"{CURSOR_PREFIX}{next}\""));
        }
        if let Some(why) = empty_list_reason.filter(|_| texts.is_empty()) {
            result.push_str(&format!(",\"_meta\":{}", json!({EMPTY_KEY: why})));
        }
        result.push('}');
        if context.agent.era == Era::Handshake
            && self
                .server_catalogs()
                .iter()
                .any(|it| it.upstream.is_streaming())
        {
            // If the servers respond with streams, the list is sent as a stream, too.
            context.sender.mark_streamed();
        }
        RpcReply::Result(match context.agent.era {
            Era::Handshake => result,
            Era::Stateless => with_private_cache(&result),
        })
    }

    /// The tools an agent sees, and the reason if there is none.
    async fn visible_tools(
        &self,
        context: &Arc<RequestContext>,
        params: &RawObject<'_>,
    ) -> Result<(Vec<String>, Option<Value>), RpcReply> {
        let meta = params.object("_meta");
        let visible = self.evaluate_visibility(context, meta.as_ref()).await?;
        let texts = visible.tools.iter().map(|(catalog, tool, shown)| {
            let kind = (ListKind::Tools, shown.as_str());
            let text = with_shown_name(&tool.definition, kind, tool.name.as_str());
            match catalog.upstream.settings().watch.strip_hidden {
                true => strip_hidden(&text).into_owned(),
                false => text.into_owned(),
            }
        });
        Ok((texts.collect(), visible.empty_list_reason))
    }

    /// The tools an agent sees, with their servers.
    pub(super) async fn visible_items(
        &self,
        context: &Arc<RequestContext>,
    ) -> Result<Vec<(Arc<ServerCatalog>, Arc<ToolItem>)>, RpcReply> {
        let visible = self.evaluate_visibility(context, None).await?;
        let tools = visible.tools.into_iter();
        Ok(tools.map(|(catalog, tool, _)| (catalog, tool)).collect())
    }

    async fn evaluate_visibility(
        &self,
        context: &Arc<RequestContext>,
        meta: Option<&RawObject<'_>>,
    ) -> Result<VisibleTools, RpcReply> {
        let lists = self.tool_lists_for(context).await;
        let state = meta.and_then(state_from_meta);
        let mut call = Call {
            principal: &context.conversation.principal,
            session: context.session(),
            state: state.as_ref(),
            claims: context.claims.as_deref(),
            attributes: self.attributes(context, meta)?,
            ..Call::default()
        };
        let refused = |it: &_| denied_reply(it, DenialForm::RpcError);
        self.apply_groups(context, meta, &mut call, refused)?;
        self.report_load();
        let visible = self.visible_by_variant(&call, &lists)?;
        let directory = self.shared.directory.load();
        let mut tools = Vec::new();
        let mut away = Vec::new();
        let (hides, mut unlisted) = (self.shared.guard.hides_unlisted(), 0);
        for (catalog, list) in &lists {
            let list = match list {
                Ok(list) => list,
                Err(error) => {
                    away.push(error.to_string());
                    continue;
                }
            };
            let available = visible
                .get(&list.variant)
                .filter(|_| list.blocked.is_none());
            let names: HashSet<&str> = available
                .into_iter()
                .flat_map(|it| it.available.iter().map(|name| &**name))
                .collect();
            let server = catalog.upstream.server_name();
            for tool in &list.tools {
                let shown = directory.tools.shown_name(server, &tool.name);
                let is_named = |it: &ExposedName| self.shared.guard.is_registered(it.as_str());
                let hidden = hides && shown.is_some_and(|it| !is_named(it));
                unlisted += usize::from(hidden);
                let shown = shown.filter(|_| tool.tool_action.is_served());
                if let Some(shown) = shown.filter(|shown| names.contains(shown.as_str())) {
                    tools.push((Arc::clone(catalog), Arc::clone(tool), shown.clone()));
                }
            }
        }
        let available = visible.values().next();
        let empty_list_reason = available.filter(|_| tools.is_empty()).map(|available| {
            empty_list_reason(
                available,
                &away,
                (directory.withheld.len(), self.collisions()),
                unlisted,
            )
        });
        Ok(VisibleTools {
            tools,
            empty_list_reason,
        })
    }

    /// The tools a request may see, for each variant of definitions that servers offer it.
    fn visible_by_variant(
        &self,
        call: &Call<'_>,
        lists: &[ToolListResult],
    ) -> Result<BTreeMap<Option<Arc<str>>, Arc<Availability>>, RpcReply> {
        let listed = lists.iter().filter_map(|(_, list)| list.as_ref().ok());
        let mut variants: BTreeSet<Option<Arc<str>>> =
            listed.map(|list| list.variant.clone()).collect();
        if variants.is_empty() {
            variants.insert(None);
        }
        let mut visible = BTreeMap::new();
        for variant in variants {
            let call = Call {
                variant: variant.as_deref(),
                ..call.clone()
            };
            let available = self.shared.guard.available(&call);
            let available =
                available.map_err(|denial| denied_reply(&denial, DenialForm::RpcError))?;
            visible.insert(variant, available);
        }
        Ok(visible)
    }

    /// The lists of all servers as an agent sees them, requested concurrently. For a server that does not respond in
    /// time, the last known list is used, and the gateway retries in the background until the server responds.
    async fn tool_lists_for(&self, context: &Arc<RequestContext>) -> Vec<ToolListResult> {
        let catalogs = self.server_catalogs();
        let mut waiting = Vec::with_capacity(catalogs.len());
        for catalog in catalogs.iter() {
            let (gateway, context) = (self.clone(), Arc::clone(context));
            let looked = Arc::clone(catalog);
            let look = async move { gateway.tool_list_for(&looked, &context).await };
            waiting.push((Arc::clone(catalog), catalog.with_list_timeout(look)));
        }
        let mut lists = Vec::with_capacity(waiting.len());
        for (catalog, look) in waiting {
            let looked = look.await;
            let list = looked.unwrap_or_else(|| Err(catalog.silent()));
            let list = list.or_else(|error| catalog.last_tools_for(context.client()).ok_or(error));
            lists.push((catalog, list));
        }
        lists
    }

    pub(super) async fn tool_list_for(
        &self,
        catalog: &Arc<ServerCatalog>,
        context: &RequestContext,
    ) -> Result<Arc<ServerToolList>, ListError> {
        let view = catalog.list_view(context.client()).await?;
        self.checked_tools(catalog, &view, None).await
    }

    /// Prompts, resources, templates or skills of all servers that an agent sees.
    async fn visible_feature_items(
        &self,
        context: &Arc<RequestContext>,
        kind: ListKind,
        params: &RawObject<'_>,
    ) -> Result<Vec<String>, RpcReply> {
        let skills = match kind {
            ListKind::Resources => self.skill_files(context).await,
            ListKind::Tools | ListKind::Prompts | ListKind::Templates | ListKind::Skills => {
                SkillFiles::default()
            }
        };
        let lists = self.feature_lists_for(context, kind).await;
        let names = self.shown_names(kind, &lists);
        let shared = match kind.is_named() {
            true => BTreeSet::new(),
            false => shared_addresses(&lists),
        };
        let mut texts = Vec::new();
        let mut used = Vec::new();
        for (catalog, list) in &lists {
            let server = catalog.upstream.name();
            for item in &list.items {
                let shown = match kind.is_named() {
                    true => names
                        .shown_name(
                            catalog.upstream.server_name(),
                            &OwnName::new(Arc::clone(&item.key)),
                        )
                        .map(|it| Cow::Borrowed(it.as_str())),
                    false if shared.contains(&item.key) => {
                        Some(Cow::Owned(qualified_uri(server, &item.key)))
                    }
                    false => Some(Cow::Borrowed(&*item.key)),
                };
                if let Some(shown) = shown {
                    let text = with_shown_name(&item.text, (kind, &shown), &item.key);
                    texts.push(match catalog.upstream.settings().watch.strip_hidden {
                        true => strip_hidden(&text).into_owned(),
                        false => text.into_owned(),
                    });
                    used.push(match kind {
                        ListKind::Prompts => {
                            self.prompt_request(kind.method(), catalog, (&shown, &item.key))
                        }
                        ListKind::Skills => {
                            FeatureRequest::new(FeatureKind::Skill, kind.method(), &item.key)
                                .on_server(catalog)
                        }
                        ListKind::Tools | ListKind::Resources | ListKind::Templates => {
                            let belonging = skills.membership(catalog, &item.key);
                            FeatureRequest {
                                withheld: belonging.withheld_reason(),
                                skills: belonging.skills,
                                ..FeatureRequest::new(
                                    FeatureKind::Resource,
                                    kind.method(),
                                    &item.key,
                                )
                                .on_server(catalog)
                            }
                        }
                    });
                }
            }
        }
        let seen = self.feature_visibility(context, params, &used)?;
        let mut seen = seen.into_iter();
        texts.retain(|_| seen.next() == Some(true));
        Ok(texts)
    }

    /// Prompts, resources or templates of each server that offers some.
    pub(super) async fn feature_lists_for(
        &self,
        context: &Arc<RequestContext>,
        kind: ListKind,
    ) -> Vec<(Arc<ServerCatalog>, Arc<ServerList>)> {
        let catalogs = self.server_catalogs();
        let mut waiting = Vec::with_capacity(catalogs.len());
        let has = |catalog: &&Arc<ServerCatalog>| !catalog.is_blocked() && catalog.has_kind(kind);
        for catalog in catalogs.iter().filter(has) {
            let (gateway, context) = (self.clone(), Arc::clone(context));
            let looked = Arc::clone(catalog);
            let look = async move {
                let view = looked.list_view(context.client()).await?;
                looked.feature_list(kind, &view, gateway.watch()).await
            };
            waiting.push((Arc::clone(catalog), catalog.with_list_timeout(look)));
        }
        let mut lists = Vec::with_capacity(waiting.len());
        for (catalog, look) in waiting {
            let list = look.await.and_then(Result::ok);
            let list = list.or_else(|| catalog.last_feature_list_for(kind, context.client()));
            lists.extend(list.map(|list| (catalog, list)));
        }
        lists
    }

    /// The names by which agents know the entries of these lists.
    pub(super) fn shown_names(
        &self,
        kind: ListKind,
        lists: &[(Arc<ServerCatalog>, Arc<ServerList>)],
    ) -> ShownNames {
        if !kind.is_named() {
            return ShownNames::default();
        }
        let settings = self.settings();
        let naming = NamingRules {
            mode: settings.prefix,
            separator: settings.separator.clone(),
        };
        // All servers count: a name must not be mistaken for one of a server that is unreachable.
        let catalogs = self.server_catalogs();
        let servers = catalogs.iter().map(|it| it.upstream.server_name().clone());
        let mut offered: BTreeMap<ServerName, OfferedNames> = servers
            .map(|server| (server, OfferedNames::new()))
            .collect();
        for (catalog, list) in lists {
            let own = offered
                .entry(catalog.upstream.server_name().clone())
                .or_default();
            let withheld = list.withheld.iter().map(|item| (item, false));
            for (item, is_served) in list.items.iter().map(|item| (item, true)).chain(withheld) {
                let known = own
                    .entry(OwnName::new(Arc::clone(&item.key)))
                    .or_insert(is_served);
                *known &= is_served;
            }
        }
        naming.assign(
            offered
                .iter()
                .map(|(server, names)| (server, names.clone())),
        )
    }
}

/// A server with its tools, or the reason why there are none.
type ToolListResult = (Arc<ServerCatalog>, Result<Arc<ServerToolList>, ListError>);

/// The tools an agent sees.
struct VisibleTools {
    /// Each tool with its server and the name the agent knows.
    tools: Vec<(Arc<ServerCatalog>, Arc<ToolItem>, ExposedName)>,
    /// Why there is none, if that is so.
    empty_list_reason: Option<Value>,
}

/// An entry under the name agents know; unchanged if that is its own name.
fn with_shown_name<'t>(
    text: &'t RawValue,
    (kind, shown): (ListKind, &str),
    own: &str,
) -> Cow<'t, str> {
    if shown == own {
        return Cow::Borrowed(text.get());
    }
    let mut members = RawObject::parse_optional(Some(text));
    members.set(kind.key(), Value::from(shown).to_string());
    Cow::Owned(members.to_string())
}

fn parse_cursor(params: &RawObject<'_>) -> Result<usize, RpcReply> {
    let Some(cursor) = params.get("cursor").filter(|it| *it != "null") else {
        return Ok(0);
    };
    let cursor = cursor.trim_matches('"');
    let number = cursor
        .strip_prefix(CURSOR_PREFIX)
        .and_then(|it| it.parse().ok());
    number.ok_or_else(|| {
        RpcReply::error(
            INVALID_PARAMS,
            "the cursor is not one of ours; start again without one",
        )
    })
}

/// The reason for lists that are empty because of `unlisted: hide`.
const UNLISTED_HIDDEN: &str = "the policy hides the tools that it does not name (`unlisted: hide`); an \
    administrator can add them to `tools` in the policy, or set `unlisted: serve`";

/// Why an agent sees no tool at all.
fn empty_list_reason(
    available: &Availability,
    away: &[String],
    (withheld, collisions): (usize, Vec<String>),
    unlisted: usize,
) -> Value {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for left_out in &available.unavailable {
        *reasons.entry(left_out.code.as_str()).or_default() += 1;
    }
    let known = available.available.len() + available.unavailable.len();
    json!({
        "text": match (known, collisions.as_slice()) {
            _ if unlisted > 0 => UNLISTED_HIDDEN,
            (0, []) => "no server behind this gateway has listed a tool yet",
            (0, _) => "every tool behind this gateway shares its name with another",
            _ => "none of the tools behind this gateway is visible to you in this session",
        },
        "tools_known": known,
        "not_in_policy": unlisted,
        "left_out": reasons,
        "unknown_groups": available.unknown_groups,
        "groups_not_granted": available.dropped_groups,
        "withheld": withheld,
        "collisions": collisions,
        "servers_away": away,
    })
}
