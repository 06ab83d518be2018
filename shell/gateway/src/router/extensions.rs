//! Protocol extensions: which ones the gateway advertises, and which server a method belongs to.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolwarden_mcp::ServerDescription;

use super::Gateway;
use crate::catalog::{SKILLS, ServerCatalog};

/// Extensions whose methods the gateway routes to the right server, however many servers declare them; pages of
/// tools have no method of their own.
const ROUTED_EXTENSIONS: [&str; 3] = [
    SKILLS,
    "io.modelcontextprotocol/tasks",
    "io.modelcontextprotocol/ui",
];

/// The servers with their descriptions of themselves.
type Descriptions = [(Arc<ServerCatalog>, Arc<ServerDescription>)];

impl Gateway {
    /// The only server that declares the extension a method belongs to. A method belongs to the extension whose name
    /// ends with the method's prefix; if none does, to the only extension there is.
    pub(super) fn extension_server(&self, method: &str) -> Option<Arc<ServerCatalog>> {
        let descriptions: Vec<_> = self
            .server_catalogs()
            .iter()
            .filter(|catalog| !catalog.is_blocked())
            .filter_map(|catalog| Some((Arc::clone(catalog), catalog.upstream.description()?)))
            .collect();
        let declared = declaring_servers(&descriptions);
        let sole: BTreeMap<&String, &Arc<ServerCatalog>> = declared
            .iter()
            .filter(|(name, _)| !ROUTED_EXTENSIONS.contains(&name.as_str()))
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

/// The extensions that work through the gateway: those whose methods it routes to the right server, and those
/// that only one server declares.
pub(super) fn advertised_extensions(
    descriptions: &Descriptions,
    mut all: Map<String, Value>,
) -> Map<String, Value> {
    let declared = declaring_servers(descriptions);
    all.retain(|name, _| {
        let servers = declared.get(name).map_or(0, Vec::len);
        ROUTED_EXTENSIONS.contains(&name.as_str()) || servers == 1
    });
    all
}

fn declaring_servers(descriptions: &Descriptions) -> BTreeMap<String, Vec<Arc<ServerCatalog>>> {
    let mut declared: BTreeMap<String, Vec<Arc<ServerCatalog>>> = BTreeMap::new();
    for (catalog, description) in descriptions {
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
                .push(Arc::clone(catalog));
        }
    }
    declared
}
