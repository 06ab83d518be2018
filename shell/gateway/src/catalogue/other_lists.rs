//! Lists of prompts, resources, templates and skills, and what of them is withheld.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolwarden_mcp::Era;
use toolwarden_warden::inline::{InlineWatch, SeenList, Treatment, is_suspicious_at_first_sight};
use toolwarden_warden::settings::{OnDrift, Trust};

use super::client_view::Looking;
use super::kind::Kind;
use super::list::{Item, List, ListError};
use super::shelf::{Shelf, lock};
use crate::blocking::run_unblocked;

/// How long these lists are kept.
const KEPT: Duration = Duration::from_secs(60);

/// Where entries of a kind are pinned, and the member of `_meta` that has the entry as its server wrote it.
const fn pinned_as(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Tools => ("tools", "toolwarden/tool"),
        Kind::Prompts => ("prompts", "toolwarden/prompt"),
        Kind::Resources => ("resources", "toolwarden/resource"),
        Kind::Templates => ("templates", "toolwarden/template"),
        Kind::Skills => ("skills", "toolwarden/skill"),
    }
}

impl Shelf {
    /// A list of prompts, resources, templates or skills. What is withheld is set aside in it.
    ///
    /// # Errors
    /// There is no list, or it cannot be checked.
    pub async fn others(
        &self,
        kind: Kind,
        looking: &Looking,
        watch: &InlineWatch,
    ) -> Result<Arc<List>, ListError> {
        let place = (kind, looking.sight.clone());
        if let Some((fetched, list)) = lock(&self.others).get(&place) {
            let ttl = list.ttl.unwrap_or(KEPT).min(KEPT);
            if fetched.elapsed() < ttl {
                return Ok(Arc::clone(list));
            }
        }
        let stateless = looking.era == Era::Stateless;
        let fetched = Instant::now();
        let fetch = List::fetch(&self.upstream, kind, &looking.key, &looking.face, stateless);
        // Servers that have resources need not have templates.
        let list = fetch.await.or_else(ListError::unless_unknown);
        let mut list = list.inspect_err(|error| self.note_malformed(error))?;
        self.withhold(kind, &mut list, watch).await?;
        let list = Arc::new(list);
        let mut others = lock(&self.others);
        others.insert(place, (fetched, Arc::clone(&list)));
        self.bound_others(&mut others);
        drop(others);
        Ok(list)
    }

    /// Sets aside the entries that are not served: models read them as they read descriptions of tools.
    /// Skills are compared with their pins. Prompts, resources and templates come and go on honest servers,
    /// so that only suspicious ones wait for approval, and with `trust: review` all.
    async fn withhold(
        &self,
        kind: Kind,
        list: &mut List,
        watch: &InlineWatch,
    ) -> Result<(), ListError> {
        let settings = &self.upstream.settings().watch;
        let is_pinned = kind == Kind::Skills || settings.trust == Trust::Review;
        let is_searched = settings.on_finding != OnDrift::Serve;
        let entries = run_unblocked(list.bytes, || {
            let is_judged = |definition: &Value| {
                is_pinned || is_searched && is_suspicious_at_first_sight(definition)
            };
            let entry = |item: &Item| match definition(kind, item) {
                Some(definition) if is_judged(&definition) => Entry::Judged(definition),
                Some(_) => Entry::Plain,
                None if is_pinned || is_searched => Entry::Unreadable,
                None => Entry::Plain,
            };
            list.items.iter().map(entry).collect::<Vec<Entry>>()
        });
        let judged: Vec<Box<RawValue>> = entries
            .iter()
            .filter_map(|entry| match entry {
                Entry::Judged(definition) => serde_json::value::to_raw_value(definition).ok(),
                Entry::Plain | Entry::Unreadable => None,
            })
            .collect();
        // A list without skills says that they are gone.
        if entries.iter().all(|it| matches!(it, Entry::Plain)) && kind != Kind::Skills {
            return Ok(());
        }
        let (scope, _) = pinned_as(kind);
        let seen = SeenList {
            variant: Some(scope.into()),
            whole: kind == Kind::Skills,
            ..self.seen(judged)
        };
        let checked = self.checked(watch, seen).await?;
        let is_served = |item: &Item, entry: &Entry| match entry {
            Entry::Plain => true,
            Entry::Unreadable => false,
            Entry::Judged(_) => {
                let treatment = checked.treatments.get(&*item.key);
                checked.block_server.is_none() && treatment.is_some_and(Treatment::is_served)
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

    /// Whether a list has an entry that is withheld under this name or address.
    pub(crate) fn withholds(&self, kind: Kind, key: &str) -> bool {
        let others = lock(&self.others);
        let lists = others.iter().filter(|((it, _), _)| *it == kind);
        let mut withheld = lists.flat_map(|(_, (_, list))| &list.withheld);
        withheld.any(|item| *item.key == *key)
    }

    /// Forgets the lists of a kind.
    pub fn forget(&self, kind: Kind) {
        lock(&self.others).retain(|(it, _), _| *it != kind);
    }

    /// Has the lists asked for again. What they withhold is withheld until then.
    pub(super) fn others_changed(&self) {
        for (fetched, _) in lock(&self.others).values_mut() {
            *fetched = fetched.checked_sub(KEPT).unwrap_or(*fetched);
        }
    }

    /// What is known of the lists of a kind, however old.
    pub(crate) fn known_others(&self, kind: Kind) -> Vec<Arc<List>> {
        let others = lock(&self.others);
        let lists = others.iter().filter(|((it, _), _)| *it == kind);
        lists.map(|(_, (_, list))| Arc::clone(list)).collect()
    }

    pub(super) fn other_at(&self, kind: Kind, sight: &str) -> Option<Arc<List>> {
        let others = lock(&self.others);
        let found = others.get(&(kind, Box::from(sight)));
        found.map(|(_, list)| Arc::clone(list))
    }
}

/// An entry of a list, as far as it is to be judged.
enum Entry {
    /// It is served without further ado.
    Plain,
    /// It is compared with what was approved.
    Judged(Value),
    /// It cannot be searched: agents may read what the gateway cannot, or in another way.
    Unreadable,
}

/// An entry as a definition that can be pinned and compared; none where readers may disagree on what it says. That
/// of a skill has the digests of its files.
fn definition(kind: Kind, item: &Item) -> Option<Value> {
    let read = toolwarden_model::json::parse(item.text.get()).ok()?;
    if !read.duplicates.is_empty() {
        return None;
    }
    let mut entry = read.value;
    // These change with what the resource holds.
    if let Some(members) = entry.as_object_mut().filter(|_| kind == Kind::Resources) {
        members.remove("size");
        let annotations = members
            .get_mut("annotations")
            .and_then(Value::as_object_mut);
        annotations.map(|it| it.remove("lastModified"));
    }
    let described = match kind {
        Kind::Skills => "/frontmatter/description",
        Kind::Tools | Kind::Prompts | Kind::Resources | Kind::Templates => "/description",
    };
    let description = entry.pointer(described).filter(|it| it.is_string());
    let (_, member) = pinned_as(kind);
    Some(json!({
        "name": &*item.key,
        "description": description.cloned().unwrap_or_default(),
        "inputSchema": {"type": "object"},
        "_meta": {member: entry},
    }))
}
