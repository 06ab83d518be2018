use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolwarden_drift::ChangeClass;
use toolwarden_gateway::catalog::{NamingRules, OriginalName};
use toolwarden_guard::{RequestedGroups, ToolIdentity, ToolPolicy};
use toolwarden_live_guard::{AuditLog, Clock, LiveGuard};
use toolwarden_model::{OwnName, ServerName};
use toolwarden_settings::{OnDrift, ServerSettings, Settings, WatchSettings};
use toolwarden_store::{ServerKey, Store, StoredDefinition};
use toolwarden_watch::{DEFAULT_SCOPE, INSTRUCTIONS, PendingApproval, Pins, pending_approvals};

use crate::args::GatewayExplainArgs;
use crate::commands::gateway::load::{self, print_warning};
use crate::error::{CliError, GatewayCommandError, GuardError};

/// What policy and store of the settings say, without a gateway.
pub(super) fn explain(args: &GatewayExplainArgs) -> Result<Value, CliError> {
    let read = load::load(args.settings.path(), None)?;
    let settings = &read.settings.settings;
    let known = stored_tools(settings)?;
    let guard = LiveGuard::open(read.policy, AuditLog::recent(), Clock::default());
    let guard = guard.map_err(GuardError::from)?;
    let offered = offered_tools(settings, known, &guard)?;
    guard.discover_served(
        offered.policies,
        offered.withheld,
        Vec::new(),
        offered.identities,
    );
    let groups = (!args.groups.is_empty()).then(|| {
        let names = args.groups.iter().map(String::as_str);
        names.collect::<RequestedGroups>()
    });
    let principal = args.principal.as_deref().unwrap_or_default();
    let explained =
        guard.explain_visibility(principal, args.session.as_deref(), &args.subject(), groups);
    Ok(explained.document())
}

/// What is known of a tool: its definition, and why it is withheld.
#[derive(Debug)]
struct StoredTool {
    definition: Value,
    withheld: Option<String>,
}

type StoredTools = BTreeMap<OwnName, StoredTool>;

/// What the store has of the tools of every server, in the order of the settings.
fn stored_tools(settings: &Settings) -> Result<Vec<(ServerName, StoredTools)>, CliError> {
    let store = Store::open_existing(&settings.store)?;
    let mut known = Vec::new();
    for server in &settings.servers {
        let tools = match &store {
            Some(store) => store.read_transaction(|store| tools_of(store, server))?,
            None => BTreeMap::new(),
        };
        if tools.is_empty() {
            print_warning(&format!(
                "nothing is known of the tools of {}: the gateway has not listed them yet",
                server.name
            ));
        }
        known.push((ServerName::new(server.name.as_str()), tools));
    }
    Ok(known)
}

fn tools_of(store: &Store, server: &ServerSettings) -> Result<StoredTools, CliError> {
    let key = ServerKey {
        name: server.name.clone(),
        scope: DEFAULT_SCOPE.to_owned(),
    };
    let pins = Pins::from_store(store, &key)?;
    let mut tools = BTreeMap::new();
    for (name, pin) in &pins.tools {
        if let Some(definition) = read_definition(store, pin.definition)? {
            let withheld = None;
            let known = StoredTool {
                definition,
                withheld,
            };
            tools.insert(OwnName::new(name.as_str()), known);
        }
    }
    for waits in pending_approvals(store, pins.server.as_slice())? {
        let name = waits.sighting.tool.as_str();
        match read_definition(store, waits.sighting.definition)? {
            None => tools.remove(name),
            Some(definition) => {
                let withheld = withheld_reason(&waits, &server.watch);
                let known = StoredTool {
                    definition,
                    withheld,
                };
                tools.insert(OwnName::new(name), known)
            }
        };
    }
    tools.remove(INSTRUCTIONS);
    Ok(tools)
}

fn read_definition(
    store: &Store,
    kept: Option<StoredDefinition>,
) -> Result<Option<Value>, CliError> {
    let Some(kept) = kept else {
        return Ok(None);
    };
    let text = store.definition(kept.fingerprint)?;
    Ok(serde_json::from_str(&text).ok())
}

/// Why the gateway withholds a tool that is pending approval; none if it serves the tool anyway.
fn withheld_reason(waits: &PendingApproval, watch: &WatchSettings) -> Option<String> {
    let kind = waits.kind();
    let class = waits.changes.iter().map(|it| it.class).max();
    let action = match (&waits.pin, class) {
        (None, _) => watch.on_new,
        (Some(_), class) => {
            let class = class.unwrap_or(ChangeClass::Equivalent);
            let said = watch.on_drift.get(&class).copied();
            said.unwrap_or(OnDrift::Quarantine)
        }
    };
    match action {
        OnDrift::Serve => None,
        OnDrift::Hide | OnDrift::Quarantine | OnDrift::BlockServer => {
            let class = class.map(|it| format!(": {}", it.as_str()));
            let class = class.unwrap_or_default();
            Some(format!("it is {kind}{class} and pending approval"))
        }
    }
}

/// The tools as the gateway would hand them to its guard.
#[derive(Debug, Default)]
struct OfferedTools {
    policies: Vec<ToolPolicy>,
    /// Why those are withheld that are.
    withheld: BTreeMap<String, String>,
    /// Whose they are, by the names agents see.
    identities: BTreeMap<Arc<str>, ToolIdentity>,
}

fn offered_tools(
    settings: &Settings,
    known: Vec<(ServerName, StoredTools)>,
    guard: &LiveGuard,
) -> Result<OfferedTools, CliError> {
    let naming = NamingRules {
        mode: settings.prefix,
        separator: settings.separator.clone(),
    };
    let names = known.iter().map(|(server, tools)| {
        let tools = tools.iter();
        let tools = tools.map(|(name, it)| (name.clone(), it.withheld.is_none()));
        (server, tools.collect())
    });
    let names = naming.assign(names);
    let servers: Vec<ServerName> = known.iter().map(|(name, _)| name.clone()).collect();
    let mut offered = OfferedTools::default();
    for (server, (name, tools)) in settings.servers.iter().zip(known) {
        let defaults = server.tool_defaults.as_ref().map(ToolPolicy::read_defaults);
        let defaults = defaults.transpose().map_err(|mistakes| {
            let server = server.name.clone();
            GatewayCommandError::Start(toolwarden_gateway::runtime::StartError::ToolDefaults {
                server,
                mistakes,
            })
        })?;
        for (tool, known) in tools {
            let Some(shown) = names.shown_name(&name, &tool) else {
                continue;
            };
            let member = |key: &str| known.definition.get(key).cloned();
            let title = member("title").and_then(|it| it.as_str().map(str::to_owned));
            let (input, output) = (member("inputSchema"), member("outputSchema"));
            let policy = ToolPolicy::discovered(shown.as_str(), title, input, output, None);
            offered.policies.push(match &defaults {
                Some(defaults) => policy.with_defaults(defaults),
                None => policy,
            });
            let named = OriginalName {
                server: name.clone(),
                name: tool.clone(),
            };
            let identity = naming.identity(&named, &names, &servers);
            let conflict = || guard.rule_conflict(&identity);
            if let Some(why) = known.withheld.or_else(conflict) {
                offered.withheld.insert(shown.to_string(), why);
            }
            offered
                .identities
                .insert(Arc::clone(shown.as_arc()), identity);
        }
    }
    Ok(offered)
}
