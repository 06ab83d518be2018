//! Extensions of the protocol: which are advertised, and whose a method is.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolwarden_mcp::ServerDescription;

use super::Gateway;
use crate::catalogue::{SKILLS, Shelf};

/// Extensions whose methods the gateway puts to the right server, however many declare them; pages of
/// tools have no method of their own.
const MULTIPLEXED: [&str; 3] = [
    SKILLS,
    "io.modelcontextprotocol/tasks",
    "io.modelcontextprotocol/ui",
];

/// What servers say of themselves, with the servers.
type Descriptions = [(Arc<Shelf>, Arc<ServerDescription>)];

impl Gateway {
    /// The one server that declares the extension a method belongs to. A method belongs to the extension
    /// whose name ends like the method begins; where none does, to the only one there is.
    pub(super) fn extension_server(&self, method: &str) -> Option<Arc<Shelf>> {
        let descriptions: Vec<_> = self
            .shelves()
            .iter()
            .filter(|shelf| !shelf.is_blocked())
            .filter_map(|shelf| Some((Arc::clone(shelf), shelf.upstream.description()?)))
            .collect();
        let declared = declared(&descriptions);
        let sole: BTreeMap<&String, &Arc<Shelf>> = declared
            .iter()
            .filter(|(name, _)| !MULTIPLEXED.contains(&name.as_str()))
            .filter_map(|(name, servers)| match servers.as_slice() {
                [only] => Some((name, only)),
                _ => None,
            })
            .collect();
        let family = method.split('/').next().unwrap_or_default();
        let named = |name: &str| name.rsplit(['/', '.']).next() == Some(family);
        let mut fitting = sole.iter().filter(|(name, _)| named(name));
        if let (Some((_, server)), None) = (fitting.next(), fitting.next()) {
            return Some(Arc::clone(server));
        }
        match sole.into_values().collect::<Vec<_>>().as_slice() {
            [only] => Some(Arc::clone(only)),
            _ => None,
        }
    }
}

/// The extensions that work through the gateway: those whose methods it puts to the right server, and
/// those of one server alone.
pub(super) fn advertised(
    descriptions: &Descriptions,
    mut all: Map<String, Value>,
) -> Map<String, Value> {
    let declared = declared(descriptions);
    all.retain(|name, _| {
        let servers = declared.get(name).map_or(0, Vec::len);
        MULTIPLEXED.contains(&name.as_str()) || servers == 1
    });
    all
}

fn declared(descriptions: &Descriptions) -> BTreeMap<String, Vec<Arc<Shelf>>> {
    let mut declared: BTreeMap<String, Vec<Arc<Shelf>>> = BTreeMap::new();
    for (shelf, description) in descriptions {
        let said = description.capabilities.as_ref();
        let said = said.and_then(|it| serde_json::from_str::<Value>(it.get()).ok());
        let extensions = said.as_ref().and_then(|it| it.get("extensions"));
        for name in extensions
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys)
        {
            declared
                .entry(name.clone())
                .or_default()
                .push(Arc::clone(shelf));
        }
    }
    declared
}
