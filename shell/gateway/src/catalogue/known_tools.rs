//! Every tool of a server that some list has.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolwarden_warden::inline::Treatment;

use super::names::Offered;
use super::shelf::{Shelf, ToolItem, ToolList};

/// What is known of the tools of a server, by their names.
#[derive(Debug)]
pub(crate) struct KnownTools(pub(crate) BTreeMap<Arc<str>, KnownTool>);

/// What is known of one name.
#[derive(Debug, Default)]
pub(crate) struct KnownTool {
    /// As the gateway itself is offered it. What one list withholds is withheld.
    own: Option<Known>,
    /// As it is offered to clients of a variant, where that is something else.
    pub(crate) variants: BTreeMap<Arc<str>, Known>,
}

/// One definition, and the list it is from.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    list: Arc<ToolList>,
    pub(crate) item: Arc<ToolItem>,
}

impl KnownTools {
    /// What the lists of a server say.
    pub(crate) fn of(shelf: &Shelf) -> Self {
        let mut lists = shelf.known_tools();
        // The gateway's own first: the others are compared with them.
        lists.sort_by_key(|list| list.variant.is_some());
        let mut tools: BTreeMap<Arc<str>, KnownTool> = BTreeMap::new();
        for list in lists {
            for item in &list.tools {
                let of_name = tools.entry(Arc::clone(&item.name)).or_default();
                of_name.take(Known {
                    list: Arc::clone(&list),
                    item: Arc::clone(item),
                });
            }
        }
        for tool in tools.values_mut() {
            tool.drop_same();
        }
        Self(tools)
    }

    /// Every name, and whether the tool is served to clients in general: what some clients are offered
    /// takes no name from what others are.
    pub(crate) fn offered(&self) -> Offered {
        let tools = self.0.iter();
        let is_served = |own: &Known| own.withheld().is_none();
        let served = |it: &KnownTool| it.own.as_ref().is_some_and(is_served);
        tools
            .map(|(name, it)| (Arc::clone(name), served(it)))
            .collect()
    }
}

impl KnownTool {
    fn take(&mut self, found: Known) {
        let Some(variant) = found.list.variant.clone() else {
            return stricter(&mut self.own, found);
        };
        let mut of_variant = self.variants.remove(&variant);
        stricter(&mut of_variant, found);
        self.variants.extend(of_variant.map(|it| (variant, it)));
    }

    /// Drops what all lists of a variant say as the gateway's own does.
    fn drop_same(&mut self) {
        let Some(own) = &self.own else {
            return;
        };
        self.variants.retain(|_, it| {
            let same_text = own.item.definition.get() == it.item.definition.get();
            !same_text || own.withheld() != it.withheld()
        });
    }

    fn all(&self) -> impl Iterator<Item = &Known> {
        self.own.iter().chain(self.variants.values())
    }

    /// The definition for clients that no variant is for, else any.
    pub(crate) fn any(&self) -> Option<&Known> {
        self.all().next()
    }

    /// Why clients that no variant is for may not call it.
    pub(crate) fn withheld_from_others(&self) -> Option<String> {
        match &self.own {
            Some(own) => own.withheld(),
            None => {
                let variants: Vec<&str> = self.variants.keys().map(|it| &**it).collect();
                Some(format!(
                    "its server offers it only to clients with other capabilities ({})",
                    variants.join("; ")
                ))
            }
        }
    }
}

impl Known {
    /// Why it is withheld.
    pub(crate) fn withheld(&self) -> Option<String> {
        if let Some(why) = &self.list.blocked {
            return Some(why.clone());
        }
        match &self.item.treatment {
            Treatment::Serve => None,
            Treatment::Hide { why } | Treatment::Quarantine { why, .. } => Some(why.clone()),
        }
    }
}

fn stricter(known: &mut Option<Known>, found: Known) {
    let settled = known.as_ref();
    if settled.is_none_or(|it| it.withheld().is_none() && found.withheld().is_some()) {
        *known = Some(found);
    }
}
