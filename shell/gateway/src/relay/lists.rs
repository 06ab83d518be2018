//! Lists for agents: of all servers, just what they may see.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashSet;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolwarden_guard::Availability;
use toolwarden_mcp::codes::INVALID_PARAMS;
use toolwarden_mcp::{Era, Members};
use toolwarden_warden::guard::Call;
use toolwarden_warden::inline::strip_hidden;

use super::asked::{Asked, STATE_KEY};
use super::denial::denied;
use super::result::private;
use super::{Gateway, Reply};
use crate::catalogue::{Kind, List, ListError, Names, Naming, Offered, Shelf, ToolList};
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
            kind => (self.visible_others(asked, kind).await, None),
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
        let lists = self.lists_for(asked).await;
        let meta = params.object("_meta");
        let state = meta.as_ref().and_then(|meta| meta.text(STATE_KEY));
        let call = Call {
            principal: &asked.conversation.principal,
            session: asked.session(),
            groups: asked.groups(meta.as_ref())?,
            state: state.as_deref(),
            ..Call::default()
        };
        let available = self
            .shared
            .guard
            .available(&call)
            .map_err(|denial| denied(&denial, DenialForm::RpcError))?;
        let visible: HashSet<&str> = available.available.iter().map(|it| &**it).collect();
        let directory = self.shared.directory.load();
        let mut texts = Vec::with_capacity(visible.len());
        let mut away = Vec::new();
        for (shelf, list) in &lists {
            let list = match list {
                Ok(list) => list,
                Err(error) => {
                    away.push(error.to_string());
                    continue;
                }
            };
            let server = shelf.upstream.name();
            let strip = shelf.upstream.settings().watch.strip_hidden;
            for tool in &list.tools {
                let shown = directory.tools.shown(server, &tool.name);
                let Some(shown) = shown.filter(|shown| visible.contains(&***shown)) else {
                    continue;
                };
                let text = renamed(&tool.definition, (Kind::Tools, shown), &tool.name);
                texts.push(match strip {
                    true => strip_hidden(&text).into_owned(),
                    false => text.into_owned(),
                });
            }
        }
        let why = texts.is_empty().then(|| {
            why_empty(
                &available,
                &away,
                (directory.withheld.len(), self.collisions()),
            )
        });
        Ok((texts, why))
    }

    /// The lists of all servers as an agent sees them, asked for side by side. A server that does not
    /// answer in time is shown as it was.
    async fn lists_for(
        &self,
        asked: &Arc<Asked>,
    ) -> Vec<(Arc<Shelf>, Result<Arc<ToolList>, ListError>)> {
        let shelves = self.shelves();
        let mut waiting = Vec::with_capacity(shelves.len());
        for shelf in shelves.iter() {
            let (gateway, asked) = (self.clone(), Arc::clone(asked));
            let looked = Arc::clone(shelf);
            let look = tokio::spawn(async move { gateway.list_for(&looked, &asked).await });
            waiting.push((Arc::clone(shelf), look));
        }
        let mut lists = Vec::with_capacity(waiting.len());
        for (shelf, look) in waiting {
            let limit = shelf.upstream.settings().timeouts.list;
            let looked = tokio::time::timeout(limit, look).await;
            let list = match looked {
                Ok(Ok(Ok(list))) => Ok(list),
                Ok(Ok(Err(error))) => shelf.last_tools("").ok_or(error),
                Ok(Err(_)) | Err(_) => shelf.last_tools("").ok_or_else(|| ListError::Unchecked {
                    server: shelf.upstream.name().to_owned(),
                    reason: format!("it did not answer within {limit:?}"),
                }),
            };
            lists.push((shelf, list));
        }
        lists
    }

    async fn list_for(
        &self,
        shelf: &Arc<Shelf>,
        asked: &Asked,
    ) -> Result<Arc<ToolList>, ListError> {
        let looking = shelf
            .sight(&asked.conversation.id, &asked.agent.face)
            .await?;
        self.tools_of(shelf, &looking, None).await
    }

    /// Prompts, resources or templates of all servers.
    async fn visible_others(&self, asked: &Arc<Asked>, kind: Kind) -> Vec<String> {
        let lists = self.others_for(asked, kind).await;
        let names = self.names_of(kind, &lists);
        let mut texts = Vec::new();
        let mut seen = BTreeSet::new();
        for (shelf, list) in &lists {
            for item in &list.items {
                if kind.is_named() {
                    if let Some(shown) = names.shown(shelf.upstream.name(), &item.key) {
                        let text = renamed(&item.text, (kind, shown), &item.key);
                        texts.push(text.into_owned());
                    }
                } else if seen.insert(Arc::clone(&item.key)) {
                    // An address that two servers have is the first one's.
                    texts.push(item.text.get().to_owned());
                }
            }
        }
        texts
    }

    /// Prompts, resources or templates of each server that has some.
    pub(super) async fn others_for(
        &self,
        asked: &Arc<Asked>,
        kind: Kind,
    ) -> Vec<(Arc<Shelf>, Arc<List>)> {
        let shelves = self.shelves();
        let mut waiting = Vec::with_capacity(shelves.len());
        for shelf in shelves.iter().filter(|shelf| !shelf.is_blocked()) {
            let asked = Arc::clone(asked);
            let looked = Arc::clone(shelf);
            let look = tokio::spawn(async move {
                let looking = looked
                    .sight(&asked.conversation.id, &asked.agent.face)
                    .await?;
                looked.others(kind, &looking).await
            });
            waiting.push((Arc::clone(shelf), look));
        }
        let mut lists = Vec::with_capacity(waiting.len());
        for (shelf, look) in waiting {
            let limit = shelf.upstream.settings().timeouts.list;
            if let Ok(Ok(Ok(list))) = tokio::time::timeout(limit, look).await {
                lists.push((shelf, list));
            }
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
        let offered: Vec<(Arc<str>, Offered)> = lists
            .iter()
            .map(|(shelf, list)| {
                let names = list.items.iter().map(|item| (Arc::clone(&item.key), true));
                (shelf.upstream.name().into(), names.collect())
            })
            .collect();
        naming.assign(
            offered
                .iter()
                .map(|(server, names)| (server, names.clone())),
        )
    }
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

/// Why an agent sees no tool at all.
fn why_empty(
    available: &Availability,
    away: &[String],
    (withheld, collisions): (usize, Vec<String>),
) -> Value {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for left_out in &available.left_out {
        *reasons.entry(left_out.code.as_str()).or_default() += 1;
    }
    let known = available.available.len() + available.left_out.len();
    json!({
        "text": match (known, collisions.as_slice()) {
            (0, []) => "no server behind this gateway has listed a tool yet",
            (0, _) => "every tool behind this gateway has the name of another",
            _ => "none of the tools behind this gateway is visible to you in this session",
        },
        "tools_known": known,
        "left_out": reasons,
        "unknown_groups": available.unknown_groups,
        "groups_not_granted": available.narrowed,
        "withheld": withheld,
        "collisions": collisions,
        "servers_away": away,
    })
}
