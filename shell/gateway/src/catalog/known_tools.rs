//! Every tool of a server that any list contains.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolwarden_model::OwnName;
use toolwarden_watch::inline::ToolAction;

use super::server_catalog::{ServerCatalog, ServerToolList, ToolItem};
use super::tool_names::OfferedNames;

/// The known tools of a server, by name.
#[derive(Debug)]
pub(crate) struct KnownTools(pub(crate) BTreeMap<OwnName, KnownTool>);

/// The known definitions of one name.
#[derive(Debug, Default)]
pub(crate) struct KnownTool {
    /// The definition that the gateway itself is offered. A tool that one list withholds is withheld.
    own: Option<KnownDefinition>,
    /// The definitions that clients of a variant are offered, where they differ.
    pub(crate) variants: BTreeMap<Arc<str>, KnownDefinition>,
}

/// One definition and its list.
#[derive(Clone, Debug)]
pub(crate) struct KnownDefinition {
    list: Arc<ServerToolList>,
    pub(crate) item: Arc<ToolItem>,
}

impl KnownTools {
    /// Collects the tools from the lists of a server.
    pub(crate) fn from_catalog(catalog: &ServerCatalog) -> Self {
        let mut lists = catalog.known_tools();
        // The gateway's own lists come first: the others are compared with them.
        lists.sort_by_key(|list| list.variant.is_some());
        let mut tools: BTreeMap<OwnName, KnownTool> = BTreeMap::new();
        for list in lists {
            for item in &list.tools {
                let of_name = tools.entry(item.name.clone()).or_default();
                of_name.insert(KnownDefinition {
                    list: Arc::clone(&list),
                    item: Arc::clone(item),
                });
            }
        }
        for tool in tools.values_mut() {
            tool.drop_duplicates();
        }
        Self(tools)
    }

    /// Every name, and whether the tool is served to clients in general: tools offered only to some clients do not
    /// reserve names.
    pub(crate) fn offered_names(&self) -> OfferedNames {
        let tools = self.0.iter();
        let is_served = |own: &KnownDefinition| own.withheld_reason().is_none();
        let served = |it: &KnownTool| it.own.as_ref().is_some_and(is_served);
        tools.map(|(name, it)| (name.clone(), served(it))).collect()
    }
}

impl KnownTool {
    fn insert(&mut self, found: KnownDefinition) {
        let Some(variant) = found.list.variant.clone() else {
            return keep_stricter(&mut self.own, found);
        };
        let mut of_variant = self.variants.remove(&variant);
        keep_stricter(&mut of_variant, found);
        self.variants.extend(of_variant.map(|it| (variant, it)));
    }

    /// Drops variants whose definition and treatment are the same as the gateway's own.
    fn drop_duplicates(&mut self) {
        let Some(own) = &self.own else {
            return;
        };
        self.variants.retain(|_, it| {
            let same_text = own.item.definition.get() == it.item.definition.get();
            !same_text || own.withheld_reason() != it.withheld_reason()
        });
    }

    fn all(&self) -> impl Iterator<Item = &KnownDefinition> {
        self.own.iter().chain(self.variants.values())
    }

    /// The definition for clients without a variant, otherwise any.
    pub(crate) fn any(&self) -> Option<&KnownDefinition> {
        self.all().next()
    }

    /// Why clients without a variant may not call it.
    pub(crate) fn withheld_from_others(&self) -> Option<String> {
        match &self.own {
            Some(own) => own.withheld_reason(),
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

impl KnownDefinition {
    /// Why it is withheld.
    pub(crate) fn withheld_reason(&self) -> Option<String> {
        if let Some(why) = &self.list.blocked {
            return Some(why.clone());
        }
        match &self.item.tool_action {
            ToolAction::Serve => None,
            ToolAction::Hide { why } | ToolAction::Quarantine { why, .. } => Some(why.clone()),
        }
    }
}

fn keep_stricter(known: &mut Option<KnownDefinition>, found: KnownDefinition) {
    let settled = known.as_ref();
    if settled.is_none_or(|it| it.withheld_reason().is_none() && found.withheld_reason().is_some())
    {
        *known = Some(found);
    }
}
