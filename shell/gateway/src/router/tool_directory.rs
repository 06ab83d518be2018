//! The checked tools of servers, and the names and rules that follow from them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use toolwarden_guard::{OutputMode, ToolPolicy, VariantTool};
use toolwarden_mcp::RawObject;
use toolwarden_model::{ExposedName, ServerName};

use super::Gateway;
use crate::catalog::{
    KnownTools, ListError, ListKind, NamingRules, OriginalName, ServerCatalog, ServerToolList,
    ServerView, malformed_name,
};
use crate::gateway::ToolDirectory;

impl Gateway {
    /// The checked tools of a server as a given client sees them. If they changed, rebuilds the names and
    /// notifies agents.
    pub(crate) async fn checked_tools(
        &self,
        catalog: &Arc<ServerCatalog>,
        view: &ServerView,
        oldest: Option<Duration>,
    ) -> Result<Arc<ServerToolList>, ListError> {
        if let Some(known) = catalog.fresh_tools(view, oldest) {
            return Ok(known);
        }
        if view.variant.is_some() {
            // The list of a variant is compared with the list that the server offers the gateway itself.
            Box::pin(self.refresh_tools(catalog, oldest)).await?;
        }
        // Listing is rare compared with calls; boxing keeps the future of a call small.
        let look = Box::pin(catalog.tools(view, &self.shared.watch, oldest)).await?;
        let list = Arc::clone(&look.list);
        if let Some(checked) = &look.checked {
            self.count_check(catalog.upstream.name(), checked);
            let before = look.before.as_ref().filter(|before| before.is_active());
            let offers_the_same = before.is_some_and(|before| before.has_same_tools(&list));
            if !offers_the_same || before.is_some_and(|it| !list.has_same_own_revision(it)) {
                let gateway = self.clone();
                // Compiling ten thousand schemas takes a while.
                let rebuilt =
                    tokio::task::spawn_blocking(move || gateway.rebuild_directory()).await;
                rebuilt.map_err(|error| ListError::CheckFailed {
                    server: catalog.upstream.name().to_owned(),
                    reason: error.to_string(),
                })?;
                // The first list of a variant or session does not concern agents of other variants or sessions.
                if !offers_the_same && (view.variant.is_none() || look.is_known_scope) {
                    self.notify_all_list_changed(ListKind::Tools);
                }
            }
            list.activate();
        }
        Ok(list)
    }

    /// Lists the tools of a server as the gateway itself sees them.
    pub(crate) async fn refresh_tools(
        &self,
        catalog: &Arc<ServerCatalog>,
        oldest: Option<Duration>,
    ) -> Result<Arc<ServerToolList>, ListError> {
        let view = catalog.gateway_view().await?;
        self.checked_tools(catalog, &view, oldest).await
    }

    /// Rebuilds the names and the guard's tools from the known lists of all servers.
    pub(crate) fn rebuild_directory(&self) {
        let held = self.shared.rebuild_lock.lock();
        let _one = held.unwrap_or_else(PoisonError::into_inner);
        let settings = self.settings();
        let catalogs = self.server_catalogs();
        let known: Vec<(ServerName, KnownTools)> = catalogs
            .iter()
            .map(|catalog| {
                let server = catalog.upstream.server_name().clone();
                (server, KnownTools::from_catalog(catalog))
            })
            .collect();
        let naming = NamingRules {
            mode: settings.prefix,
            separator: settings.separator.clone(),
        };
        let names = naming.assign(
            known
                .iter()
                .map(|(server, tools)| (server, tools.offered_names())),
        );
        let mut directory = ToolDirectory::default();
        let mut tools = Vec::new();
        let mut variants = Vec::new();
        let mut identities = BTreeMap::new();
        let servers: Vec<ServerName> = known.iter().map(|(server, _)| server.clone()).collect();
        for (catalog, (server, known)) in catalogs.iter().zip(&known) {
            let settings = catalog.upstream.settings();
            let defaults = settings
                .tool_defaults
                .as_ref()
                .map(ToolPolicy::read_defaults);
            let output = settings.watch.output;
            let unread = matches!(&defaults, Some(Err(_))).then(|| UNREADABLE_DEFAULTS.to_owned());
            let defaults = defaults.as_ref().and_then(|read| read.as_ref().ok());
            for (name, of_name) in &known.0 {
                let Some(shown) = names.shown_name(server, name) else {
                    continue;
                };
                let make = |text: &RawValue| tool_policy(text, shown, defaults, output);
                let named = OriginalName {
                    server: server.clone(),
                    name: name.clone(),
                };
                let identity = naming.identity(&named, &names, &servers);
                let conflict = self.shared.guard.rule_conflict(&identity);
                let for_all = unread.clone().or(conflict).or_else(|| malformed_name(name));
                identities.insert(Arc::clone(shown.as_arc()), identity);
                let why = of_name.withheld_from_others().or_else(|| for_all.clone());
                if let Some(why) = why {
                    directory.withheld.insert(shown.clone(), why);
                }
                tools.extend(of_name.any().map(|known| known.item.policy(shown, make)));
                for (variant, known) in &of_name.variants {
                    let why = known.withheld_reason().or_else(|| for_all.clone());
                    let why: Option<Arc<str>> = why.map(Into::into);
                    variants.push(VariantTool {
                        variant: Arc::clone(variant),
                        policy: known.item.policy(shown, make),
                        quarantine: why.clone(),
                    });
                    let of_tool = directory.variants.entry(shown.clone()).or_default();
                    of_tool.insert(Arc::clone(variant), why);
                }
            }
        }
        let withheld = directory.withheld.iter();
        let withheld = withheld.map(|(shown, why)| (shown.to_string(), why.clone()));
        let faults = self
            .guard()
            .discover_served(tools, withheld.collect(), variants, identities);
        self.metrics().set_unusable_schemas(faults.len());
        directory.tools = names;
        self.shared.directory.store(Arc::new(directory));
    }
}

/// Why tools are withheld whose rules cannot be read: without its rules, a tool would be open to every caller.
const UNREADABLE_DEFAULTS: &str = "the `tool_defaults` of its server cannot be read";

/// The policy that the guard enforces for a tool, from its definition.
fn tool_policy(
    definition: &RawValue,
    shown: &ExposedName,
    defaults: Option<&ToolPolicy>,
    output_mode: OutputMode,
) -> ToolPolicy {
    let definition = RawObject::parse_optional(Some(definition));
    let member = |key: &str| serde_json::from_str::<Value>(definition.get(key)?).ok();
    let title = definition.text("title").map(Cow::into_owned);
    let (input, output) = (member("inputSchema"), member("outputSchema"));
    let policy = ToolPolicy::discovered(shown.as_str(), title, input, output, None);
    let policy = match defaults {
        Some(defaults) => policy.with_defaults(defaults),
        None => policy,
    };
    // The output mode of the defaults takes precedence over that of the watch.
    if policy.output_mode == OutputMode::default() {
        return ToolPolicy {
            output_mode,
            ..policy
        };
    }
    policy
}
