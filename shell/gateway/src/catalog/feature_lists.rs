//! Lists of prompts, resources, templates and skills, and their withheld entries.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolwarden_mcp::Era;
use toolwarden_settings::{OnDrift, TrustMode};
use toolwarden_watch::inline::{InlineWatch, ReceivedList, ToolAction, is_withheld_on_first_use};

use super::list_kind::ListKind;
use super::server_catalog::{ServerCatalog, lock};
use super::server_list::{ListError, ListItem, ServerList};
use super::server_view::ServerView;
use crate::blocking::run_unblocked;

/// How long these lists are cached.
const MAX_AGE: Duration = Duration::from_secs(60);

/// The scope in which entries of a kind are pinned, and the member of `_meta` with the entry as its server wrote it.
const fn pin_location(kind: ListKind) -> (&'static str, &'static str) {
    match kind {
        ListKind::Tools => ("tools", "toolwarden/tool"),
        ListKind::Prompts => ("prompts", "toolwarden/prompt"),
        ListKind::Resources => ("resources", "toolwarden/resource"),
        ListKind::Templates => ("templates", "toolwarden/template"),
        ListKind::Skills => ("skills", "toolwarden/skill"),
    }
}

impl ServerCatalog {
    /// A list of prompts, resources, templates or skills. Withheld entries are kept apart in it.
    ///
    /// # Errors
    /// There is no list, or it cannot be checked.
    pub async fn feature_list(
        &self,
        kind: ListKind,
        view: &ServerView,
        watch: &InlineWatch,
    ) -> Result<Arc<ServerList>, ListError> {
        let place = (kind, view.scope.clone());
        if let Some((fetched, list)) = lock(&self.feature_lists).get(&place) {
            let ttl = list.ttl.unwrap_or(MAX_AGE).min(MAX_AGE);
            if fetched.elapsed() < ttl {
                return Ok(Arc::clone(list));
            }
        }
        let stateless = view.era == Era::Stateless;
        let fetched = Instant::now();
        let fetch = ServerList::fetch(
            &self.upstream,
            kind,
            &view.key,
            &view.client_info,
            stateless,
        );
        // Servers with resources need not have templates.
        let list = fetch.await.or_else(ListError::empty_if_unsupported);
        let mut list = list.inspect_err(|error| self.report_malformed(error))?;
        self.withhold(kind, &mut list, watch).await?;
        let list = Arc::new(list);
        let mut others = lock(&self.feature_lists);
        others.insert(place, (fetched, Arc::clone(&list)));
        self.evict_feature_lists(&mut others);
        drop(others);
        Ok(list)
    }

    /// Separates the entries that are not served: models read them like descriptions of tools. Skills are compared
    /// with their pins. Prompts, resources and templates come and go on honest servers, so only suspicious ones wait
    /// for approval, and all of them with `trust: review`.
    async fn withhold(
        &self,
        kind: ListKind,
        list: &mut ServerList,
        watch: &InlineWatch,
    ) -> Result<(), ListError> {
        let settings = &self.upstream.settings().watch;
        let is_pinned = kind == ListKind::Skills || settings.trust == TrustMode::Review;
        let is_searched = settings.on_finding != OnDrift::Serve;
        let entries = run_unblocked(list.bytes, || {
            let is_judged = |definition: &Value| {
                is_pinned || is_searched && is_withheld_on_first_use(definition)
            };
            let entry = |item: &ListItem| match item_definition(kind, item) {
                Some(definition) if is_judged(&definition) => ItemCheck::Compare(definition),
                Some(_) => ItemCheck::Plain,
                None if is_pinned || is_searched => ItemCheck::Unreadable,
                None => ItemCheck::Plain,
            };
            list.items.iter().map(entry).collect::<Vec<ItemCheck>>()
        });
        let judged: Vec<Box<RawValue>> = entries
            .iter()
            .filter_map(|entry| match entry {
                ItemCheck::Compare(definition) => serde_json::value::to_raw_value(definition).ok(),
                ItemCheck::Plain | ItemCheck::Unreadable => None,
            })
            .collect();
        // A list without skills means that they were removed.
        if entries.iter().all(|it| matches!(it, ItemCheck::Plain)) && kind != ListKind::Skills {
            return Ok(());
        }
        let (scope, _) = pin_location(kind);
        let seen = ReceivedList {
            variant: Some(scope.into()),
            is_complete: kind == ListKind::Skills,
            ..self.observed_list(judged)
        };
        let checked = self.run_check(watch, seen).await?;
        let is_served = |item: &ListItem, entry: &ItemCheck| match entry {
            ItemCheck::Plain => true,
            ItemCheck::Unreadable => false,
            ItemCheck::Compare(_) => {
                let tool_action = checked.tool_actions.get(&*item.key);
                checked.block_server.is_none() && tool_action.is_some_and(ToolAction::is_served)
            }
        };
        for (item, entry) in std::mem::take(&mut list.items).into_iter().zip(&entries) {
            if is_served(&item, entry) {
                list.items.push(item);
            } else {
                list.withheld.push(item);
            }
        }
        Ok(())
    }

    /// Whether a list withholds an entry under this name or address.
    pub(crate) fn withholds_item(&self, kind: ListKind, key: &str) -> bool {
        let others = lock(&self.feature_lists);
        let lists = others.iter().filter(|((it, _), _)| *it == kind);
        let mut withheld = lists.flat_map(|(_, (_, list))| &list.withheld);
        withheld.any(|item| *item.key == *key)
    }

    /// Forgets the lists of a kind.
    pub fn forget_lists(&self, kind: ListKind) {
        lock(&self.feature_lists).retain(|(it, _), _| *it != kind);
    }

    /// Marks the lists as stale. Until they are fetched again, withheld entries stay withheld.
    pub(super) fn expire_feature_lists(&self) {
        for (fetched, _) in lock(&self.feature_lists).values_mut() {
            *fetched = fetched.checked_sub(MAX_AGE).unwrap_or(*fetched);
        }
    }

    /// The known lists of a kind, however old.
    pub(crate) fn known_feature_lists(&self, kind: ListKind) -> Vec<Arc<ServerList>> {
        let others = lock(&self.feature_lists);
        let lists = others.iter().filter(|((it, _), _)| *it == kind);
        lists.map(|(_, (_, list))| Arc::clone(list)).collect()
    }

    pub(super) fn cached_feature_list(
        &self,
        kind: ListKind,
        sight: &str,
    ) -> Option<Arc<ServerList>> {
        let others = lock(&self.feature_lists);
        let found = others.get(&(kind, Box::from(sight)));
        found.map(|(_, list)| Arc::clone(list))
    }
}

/// How an entry of a list is checked.
enum ItemCheck {
    /// It is served without a check.
    Plain,
    /// It is compared with what was approved.
    Compare(Value),
    /// It cannot be checked: agents may parse what the gateway cannot, or parse it differently.
    Unreadable,
}

/// An entry as a definition that can be pinned and compared; `None` if parsers may disagree on its content. The
/// definition of a skill includes the digests of its files.
fn item_definition(kind: ListKind, item: &ListItem) -> Option<Value> {
    let read = toolwarden_model::json::parse(item.text.get()).ok()?;
    if !read.duplicates.is_empty() {
        return None;
    }
    let mut entry = read.value;
    // These members change with the content of the resource.
    if let Some(members) = entry
        .as_object_mut()
        .filter(|_| kind == ListKind::Resources)
    {
        members.remove("size");
        let annotations = members
            .get_mut("annotations")
            .and_then(Value::as_object_mut);
        annotations.map(|it| it.remove("lastModified"));
    }
    let described = match kind {
        ListKind::Skills => "/frontmatter/description",
        ListKind::Tools | ListKind::Prompts | ListKind::Resources | ListKind::Templates => {
            "/description"
        }
    };
    let description = entry.pointer(described).filter(|it| it.is_string());
    let (_, member) = pin_location(kind);
    Some(json!({
        "name": &*item.key,
        "description": description.cloned().unwrap_or_default(),
        "inputSchema": {"type": "object"},
        "_meta": {member: entry},
    }))
}
