//! Lists for agents: of all servers, just what they may see.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashSet;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolwarden_guard::{Availability, FeatureKind};
use toolwarden_mcp::codes::INVALID_PARAMS;
use toolwarden_mcp::{Era, Members};
use toolwarden_warden::guard::Call;
use toolwarden_warden::inline::strip_hidden;

use super::asked::{Asked, STATE_KEY};
use super::denial::denied;
use super::features::Used;
use super::resources::{qualified, shared_addresses};
use super::result::private;
use super::skill_files::SkillFiles;
use super::{Gateway, Reply};
use crate::catalogue::{Kind, List, ListError, Names, Naming, Offered, Shelf, ToolItem, ToolList};
use toolwarden_warden::settings::DenialForm;

/// Where an empty list says why it is empty.
const EMPTY_KEY: &str = "toolwarden/empty";
/// What the cursors of our pages begin with.
const CURSOR: &str = "tw-";

impl Gateway {
    pub(super) async fn list(
        &self,
        asked: &Arc<Asked>,
        kind: Kind,
        params: Option<&RawValue>,
    ) -> Reply {
        let members = Members::of_optional(params);
        let from = match offset(&members) {
            Ok(from) => from,
            Err(reply) => return reply,
        };
        let (texts, why_empty) = match kind {
            Kind::Tools => match self.visible_tools(asked, &members).await {
                Ok(found) => found,
                Err(reply) => return reply,
            },
            kind => match self.visible_others(asked, kind, &members).await {
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
            result.push_str(&format!(",\"nextCursor\":\"{CURSOR}{next}\""));
        }
        if let Some(why) = why_empty.filter(|_| texts.is_empty()) {
            result.push_str(&format!(",\"_meta\":{}", json!({EMPTY_KEY: why})));
        }
        result.push('}');
        if asked.agent.era == Era::Handshake
            && self.shelves().iter().any(|it| it.upstream.is_streaming())
        {
            // A list of servers that answer by streams comes as they would send it.
            asked.outlet.mark_streamed();
        }
        Reply::Result(match asked.agent.era {
            Era::Handshake => result,
            Era::Stateless => private(&result),
        })
    }

    /// The tools an agent sees, and why there is none where that is so.
    async fn visible_tools(
        &self,
        asked: &Arc<Asked>,
        params: &Members<'_>,
    ) -> Result<(Vec<String>, Option<Value>), Reply> {
        let meta = params.object("_meta");
        let visible = self.visible(asked, meta.as_ref()).await?;
        let texts = visible.tools.iter().map(|(shelf, tool, shown)| {
            let text = renamed(&tool.definition, (Kind::Tools, shown), &tool.name);
            match shelf.upstream.settings().watch.strip_hidden {
                true => strip_hidden(&text).into_owned(),
                false => text.into_owned(),
            }
        });
        Ok((texts.collect(), visible.why_empty))
    }

    /// The tools an agent sees, and whose they are.
    pub(super) async fn visible_items(
        &self,
        asked: &Arc<Asked>,
    ) -> Result<Vec<(Arc<Shelf>, Arc<ToolItem>)>, Reply> {
        let visible = self.visible(asked, None).await?;
        let tools = visible.tools.into_iter();
        Ok(tools.map(|(shelf, tool, _)| (shelf, tool)).collect())
    }

    async fn visible(
        &self,
        asked: &Arc<Asked>,
        meta: Option<&Members<'_>>,
    ) -> Result<Visible, Reply> {
        let lists = self.lists_for(asked).await;
        let state = meta.and_then(|meta| meta.text(STATE_KEY));
        let mut call = Call {
            principal: &asked.conversation.principal,
            session: asked.session(),
            state: state.as_deref(),
            claims: asked.claims.as_deref(),
            attributes: self.attributes(asked, meta)?,
            ..Call::default()
        };
        let refused = |it: &_| denied(it, DenialForm::RpcError);
        self.ask_for_groups(asked, meta, &mut call, refused)?;
        self.report_load();
        let visible = self.visible_by_variant(&call, &lists)?;
        let directory = self.shared.directory.load();
        let mut tools = Vec::new();
        let mut away = Vec::new();
        let (hides, mut unlisted) = (self.shared.guard.hides_unlisted(), 0);
        for (shelf, list) in &lists {
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
            let server = shelf.upstream.name();
            for tool in &list.tools {
                let shown = directory.tools.shown(server, &tool.name);
                let hidden = hides && shown.is_some_and(|it| !self.shared.guard.is_registered(it));
                unlisted += usize::from(hidden);
                let shown = shown.filter(|_| tool.treatment.is_served());
                if let Some(shown) = shown.filter(|shown| names.contains(&***shown)) {
                    tools.push((Arc::clone(shelf), Arc::clone(tool), Arc::clone(shown)));
                }
            }
        }
        let available = visible.values().next();
        let why_empty = available.filter(|_| tools.is_empty()).map(|available| {
            why_empty(
                available,
                &away,
                (directory.withheld.len(), self.collisions()),
                unlisted,
            )
        });
        Ok(Visible { tools, why_empty })
    }

    /// What a request may see, for each variant of definitions that servers offer it.
    fn visible_by_variant(
        &self,
        call: &Call<'_>,
        lists: &[ServerList],
    ) -> Result<BTreeMap<Option<Arc<str>>, Arc<Availability>>, Reply> {
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
            let available = available.map_err(|denial| denied(&denial, DenialForm::RpcError))?;
            visible.insert(variant, available);
        }
        Ok(visible)
    }

    /// The lists of all servers as an agent sees them, asked for side by side. A server that does not
    /// answer in time is shown as it was, and from then on asked in the background until it answers.
    async fn lists_for(&self, asked: &Arc<Asked>) -> Vec<ServerList> {
        let shelves = self.shelves();
        let mut waiting = Vec::with_capacity(shelves.len());
        for shelf in shelves.iter() {
            let (gateway, asked) = (self.clone(), Arc::clone(asked));
            let looked = Arc::clone(shelf);
            let look = async move { gateway.list_for(&looked, &asked).await };
            waiting.push((Arc::clone(shelf), shelf.wait_for(look)));
        }
        let mut lists = Vec::with_capacity(waiting.len());
        for (shelf, look) in waiting {
            let looked = look.await;
            let list = looked.unwrap_or_else(|| Err(shelf.silent()));
            let list = list.or_else(|error| shelf.last_seen_by(asked.client()).ok_or(error));
            lists.push((shelf, list));
        }
        lists
    }

    pub(super) async fn list_for(
        &self,
        shelf: &Arc<Shelf>,
        asked: &Asked,
    ) -> Result<Arc<ToolList>, ListError> {
        let looking = shelf.list_sight(asked.client()).await?;
        self.tools_of(shelf, &looking, None).await
    }

    /// Prompts, resources, templates or skills of all servers that an agent sees.
    async fn visible_others(
        &self,
        asked: &Arc<Asked>,
        kind: Kind,
        params: &Members<'_>,
    ) -> Result<Vec<String>, Reply> {
        let skills = match kind {
            Kind::Resources => self.skill_files(asked).await,
            Kind::Tools | Kind::Prompts | Kind::Templates | Kind::Skills => SkillFiles::default(),
        };
        let lists = self.others_for(asked, kind).await;
        let names = self.names_of(kind, &lists);
        let shared = match kind.is_named() {
            true => BTreeSet::new(),
            false => shared_addresses(&lists),
        };
        let mut texts = Vec::new();
        let mut used = Vec::new();
        for (shelf, list) in &lists {
            let server = shelf.upstream.name();
            for item in &list.items {
                let shown = match kind.is_named() {
                    true => names
                        .shown(server, &item.key)
                        .map(|it| Cow::Borrowed(&**it)),
                    false if shared.contains(&item.key) => {
                        Some(Cow::Owned(qualified(server, &item.key)))
                    }
                    false => Some(Cow::Borrowed(&*item.key)),
                };
                if let Some(shown) = shown {
                    let text = renamed(&item.text, (kind, &shown), &item.key);
                    texts.push(match shelf.upstream.settings().watch.strip_hidden {
                        true => strip_hidden(&text).into_owned(),
                        false => text.into_owned(),
                    });
                    used.push(match kind {
                        Kind::Prompts => {
                            self.prompt_used(kind.method(), shelf, (&shown, &item.key))
                        }
                        Kind::Skills => {
                            Used::new(FeatureKind::Skill, kind.method(), &item.key).at(shelf)
                        }
                        Kind::Tools | Kind::Resources | Kind::Templates => {
                            let belonging = skills.belonging(shelf, &item.key);
                            Used {
                                withheld: belonging.withheld(),
                                skills: belonging.skills,
                                ..Used::new(FeatureKind::Resource, kind.method(), &item.key)
                                    .at(shelf)
                            }
                        }
                    });
                }
            }
        }
        let seen = self.seen(asked, params, &used)?;
        let mut seen = seen.into_iter();
        texts.retain(|_| seen.next() == Some(true));
        Ok(texts)
    }

    /// Prompts, resources or templates of each server that has some.
    pub(super) async fn others_for(
        &self,
        asked: &Arc<Asked>,
        kind: Kind,
    ) -> Vec<(Arc<Shelf>, Arc<List>)> {
        let shelves = self.shelves();
        let mut waiting = Vec::with_capacity(shelves.len());
        let has = |shelf: &&Arc<Shelf>| !shelf.is_blocked() && shelf.has(kind);
        for shelf in shelves.iter().filter(has) {
            let (gateway, asked) = (self.clone(), Arc::clone(asked));
            let looked = Arc::clone(shelf);
            let look = async move {
                let looking = looked.list_sight(asked.client()).await?;
                looked.others(kind, &looking, gateway.watch()).await
            };
            waiting.push((Arc::clone(shelf), shelf.wait_for(look)));
        }
        let mut lists = Vec::with_capacity(waiting.len());
        for (shelf, look) in waiting {
            let list = look.await.and_then(Result::ok);
            let list = list.or_else(|| shelf.last_other(kind, asked.client()));
            lists.extend(list.map(|list| (shelf, list)));
        }
        lists
    }

    /// What agents call what is in these lists.
    pub(super) fn names_of(&self, kind: Kind, lists: &[(Arc<Shelf>, Arc<List>)]) -> Names {
        if !kind.is_named() {
            return Names::default();
        }
        let settings = self.settings();
        let naming = Naming {
            mode: settings.prefix,
            separator: settings.separator.clone(),
        };
        // All servers count, for a name must not pass for one of a server that is away.
        let shelves = self.shelves();
        let servers = shelves.iter().map(|it| Arc::from(it.upstream.name()));
        let mut offered: BTreeMap<Arc<str>, Offered> =
            servers.map(|server| (server, Offered::new())).collect();
        for (shelf, list) in lists {
            let own = offered.entry(shelf.upstream.name().into()).or_default();
            let withheld = list.withheld.iter().map(|item| (item, false));
            for (item, is_served) in list.items.iter().map(|item| (item, true)).chain(withheld) {
                let known = own.entry(Arc::clone(&item.key)).or_insert(is_served);
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

/// A server and its tools, or why there are none.
type ServerList = (Arc<Shelf>, Result<Arc<ToolList>, ListError>);

/// The tools an agent sees.
struct Visible {
    /// Whose each is, and what the agent calls it.
    tools: Vec<(Arc<Shelf>, Arc<ToolItem>, Arc<str>)>,
    /// Why there is none, where that is so.
    why_empty: Option<Value>,
}

/// An entry under the name agents know; untouched where that is its own.
fn renamed<'t>(text: &'t RawValue, (kind, shown): (Kind, &str), own: &str) -> Cow<'t, str> {
    if shown == own {
        return Cow::Borrowed(text.get());
    }
    let mut members = Members::of_optional(Some(text));
    members.set(kind.key(), Value::from(shown).to_string());
    Cow::Owned(members.to_string())
}

fn offset(params: &Members<'_>) -> Result<usize, Reply> {
    let Some(cursor) = params.get("cursor").filter(|it| *it != "null") else {
        return Ok(0);
    };
    let cursor = cursor.trim_matches('"');
    let number = cursor.strip_prefix(CURSOR).and_then(|it| it.parse().ok());
    number.ok_or_else(|| {
        Reply::error(
            INVALID_PARAMS,
            "the cursor is none of ours; start again without one",
        )
    })
}

/// Of lists that are empty because of `unlisted: hide`.
const HIDDEN: &str = "the policy hides the tools that it does not name (`unlisted: hide`); an \
    administrator can add them to `tools` in the policy, or set `unlisted: serve`";

/// Why an agent sees no tool at all.
fn why_empty(
    available: &Availability,
    away: &[String],
    (withheld, collisions): (usize, Vec<String>),
    unlisted: usize,
) -> Value {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for left_out in &available.left_out {
        *reasons.entry(left_out.code.as_str()).or_default() += 1;
    }
    let known = available.available.len() + available.left_out.len();
    json!({
        "text": match (known, collisions.as_slice()) {
            _ if unlisted > 0 => HIDDEN,
            (0, []) => "no server behind this gateway has listed a tool yet",
            (0, _) => "every tool behind this gateway has the name of another",
            _ => "none of the tools behind this gateway is visible to you in this session",
        },
        "tools_known": known,
        "not_in_policy": unlisted,
        "left_out": reasons,
        "unknown_groups": available.unknown_groups,
        "groups_not_granted": available.narrowed,
        "withheld": withheld,
        "collisions": collisions,
        "servers_away": away,
    })
}
