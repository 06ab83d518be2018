//! Explains why a principal sees a tool or does not.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_guard::FeatureKind;
use toolwarden_live_guard::{Call, Explanation};
use toolwarden_model::{ExposedName, OwnName, ServerName};

use super::request::ApiRequest;
use super::response::{ApiResponse, rounded_seconds};
use super::route::HandlerResult;
use super::server_tools::treatment_json;
use crate::catalog::{ListKind, ServerCatalog, ServerToolList, collision_text};
use crate::gateway::Gateway;
use crate::upstream::UpstreamHealth;

/// Why a principal cannot use a tool, and the remedy.
struct Cause {
    code: &'static str,
    /// Continues the sentence "… does not see …:".
    why: String,
    remedy: String,
}

/// The server of a tool.
struct ToolLocation {
    catalog: Arc<ServerCatalog>,
    /// The server's own name for it.
    tool: OwnName,
}

/// `GET /explain`
pub(super) async fn explain(api_request: ApiRequest) -> HandlerResult {
    let principal = api_request.subject("explain")?;
    let (gateway, given) = (api_request.gateway(), &api_request.params);
    let (tool, session) = (given.required_text("tool")?, given.text("session"));
    let guard = gateway.guard();
    let is_tool = gateway.locate_tool(tool).is_some() || guard.is_registered(tool);
    if let Some((kind, name)) = feature(tool).filter(|_| !is_tool) {
        return explain_feature(&api_request, &principal, (kind, name));
    }
    let told = guard.explain_call(&Call {
        tool,
        principal: &principal,
        session,
        groups: api_request.groups(),
        claims: api_request.claims(&principal),
        ..Call::default()
    });
    let place = gateway.locate_tool(tool);
    let suggestions = gateway.suggestions(tool);
    let listed = gateway.named(&ExposedName::new(tool)).is_some();
    let cause = gateway.cause(tool, place.as_ref(), &told, &suggestions);
    let visible = listed && told.visible;
    let sentence = match &cause {
        Some(cause) if visible => {
            with_full_stop(format!("`{principal}` sees `{tool}`, but {}", cause.why))
        }
        Some(cause) => with_full_stop(format!(
            "`{principal}` does not see `{tool}`: {}",
            cause.why
        )),
        None => format!("`{principal}` sees `{tool}` and may call it."),
    };
    let (code, remedy) = match cause {
        Some(cause) => (cause.code, cause.remedy),
        None => ("visible", "Nothing needs to change.".to_owned()),
    };
    let mut gates = told.document();
    Ok(ApiResponse::document(
        "explanation",
        json!({
            "answer": sentence,
            "cause": code,
            "remedy": remedy,
            "visible": visible,
            "callable": listed && told.callable && code == "visible",
            "principal": &*principal,
            "tool": tool,
            "session": session,
            "gates": gates.get_mut("steps").map(Value::take),
            "server": place.as_ref().map(|it| server_json(it, api_request.is_admin())),
            "treatment": place.as_ref().and_then(tool_action_of),
            "collision": gateway.collision(tool),
            "suggestions": suggestions,
        }),
    ))
}

/// Parses a name as records write it, such as `resource:file:///plan`; `None` for a tool.
fn feature(name: &str) -> Option<(FeatureKind, &str)> {
    let (kind, name) = name.split_once(':')?;
    let kind = FeatureKind::from_word(kind).filter(|it| *it != FeatureKind::Tool);
    Some((kind?, name))
}

/// Why a principal may use a feature other than a tool or may not, as far as the lists of servers are known.
fn explain_feature(
    api_request: &ApiRequest,
    principal: &str,
    (kind, name): (FeatureKind, &str),
) -> HandlerResult {
    let (gateway, session) = (api_request.gateway(), api_request.params.text("session"));
    let known = gateway.known_feature(kind, name);
    let told = gateway.guard().explain_call(&Call {
        feature: Some(known.feature()),
        principal,
        session,
        groups: api_request.groups(),
        claims: api_request.claims(principal),
        ..Call::default()
    });
    let cause = match &known.catalog {
        None => Some(Cause {
            code: "unknown",
            why: format!(
                "no known list of a server contains it{}",
                gateway.unlisted_servers(kind)
            ),
            remedy: "Have an agent list what servers offer, and check the name.".to_owned(),
        }),
        Some(catalog) => denied_cause(&told).or_else(|| unreachable_cause(catalog)),
    };
    let what = format!("{kind} `{name}`");
    let (sentence, code, remedy) = match cause {
        Some(cause) => (
            with_full_stop(format!("`{principal}` may not use {what}: {}", cause.why)),
            cause.code,
            cause.remedy,
        ),
        None => (
            format!("`{principal}` sees {what} and may use it."),
            "visible",
            "Nothing needs to change.".to_owned(),
        ),
    };
    let is_known = known.catalog.is_some();
    let server = known.catalog.as_ref().map(|catalog| {
        let status = catalog.upstream.status();
        let error = status.last_error.filter(|_| api_request.is_admin());
        json!({
            "name": catalog.upstream.name(),
            "tool": name,
            "health": status.health.as_str(),
            "lists_it": true,
            "list_age": null,
            "last_error": error.map(|it| it.text),
        })
    });
    let mut gates = told.document();
    Ok(ApiResponse::document(
        "explanation",
        json!({
            "answer": sentence,
            "cause": code,
            "remedy": remedy,
            "visible": is_known && told.visible,
            "callable": is_known && code == "visible",
            "principal": principal,
            "tool": format!("{kind}:{name}"),
            "session": session,
            "gates": gates.get_mut("steps").map(Value::take),
            "server": server,
            "treatment": null,
            "collision": null,
            "suggestions": [],
        }),
    ))
}

impl Gateway {
    /// Servers whose lists of a kind are not known yet, as the continuation of a sentence.
    fn unlisted_servers(&self, kind: FeatureKind) -> String {
        let lists = match kind {
            FeatureKind::Prompt => ListKind::Prompts,
            FeatureKind::Skill => ListKind::Skills,
            FeatureKind::Resource | FeatureKind::Tool | FeatureKind::Method => ListKind::Resources,
        };
        let catalogs = self.server_catalogs();
        let silent = catalogs
            .iter()
            .filter(|it| it.known_feature_lists(lists).is_empty());
        let silent: Vec<String> = silent.map(|it| status_text(it)).collect();
        silent_servers_text(&silent)
    }

    /// Finds a tool by its name, or by the prefix of a server.
    fn locate_tool(&self, tool: &str) -> Option<ToolLocation> {
        let directory = self.shared.directory.load();
        if let Some(named) = directory.tools.find(&ExposedName::new(tool)) {
            return Some(ToolLocation {
                catalog: self.server_catalog(named.server.as_str())?,
                tool: named.name.clone(),
            });
        }
        let separator = self.settings().separator.clone();
        let catalogs = self.server_catalogs();
        let prefixed = catalogs.iter().filter_map(|catalog| {
            let rest = tool.strip_prefix(catalog.upstream.name())?;
            let rest = rest.strip_prefix(&separator)?;
            Some(ToolLocation {
                catalog: Arc::clone(catalog),
                tool: OwnName::new(rest),
            })
        });
        // The name of one server may begin with that of another.
        prefixed.max_by_key(|it| it.catalog.upstream.name().len())
    }

    /// Suggested names: the same tool under the name agents know, otherwise the nearest names.
    fn suggestions(&self, tool: &str) -> Vec<String> {
        let directory = self.shared.directory.load();
        if directory.tools.find(&ExposedName::new(tool)).is_some() {
            return Vec::new();
        }
        let mut names = Vec::new();
        for catalog in self.server_catalogs().iter() {
            let server = catalog.upstream.server_name();
            // The caller used the server's own name, or the prefixed form of a name that has no prefix.
            let prefix = format!("{server}{}", self.settings().separator);
            let own = [Some(tool), tool.strip_prefix(&prefix)];
            for own in own.into_iter().flatten() {
                names.extend(
                    directory
                        .tools
                        .shown_name(server, &OwnName::new(own))
                        .map(ToString::to_string),
                );
            }
        }
        // A name in the policy is correct, whichever server offers the tool.
        if names.is_empty() && !self.guard().is_registered(tool) {
            let known = self.guard().tool_names();
            let offered = known.iter().map(String::as_str);
            let offered =
                offered.filter(|name| directory.tools.find(&ExposedName::new(*name)).is_some());
            let nearest = toolwarden_model::did_you_mean(tool, offered);
            names.extend(nearest.split('`').nth(1).map(str::to_owned));
        }
        names.dedup();
        names
    }

    fn collision(&self, tool: &str) -> Value {
        let directory = self.shared.directory.load();
        let name = ExposedName::new(tool);
        let Some(servers) = directory.tools.refused(&name) else {
            return Value::Null;
        };
        let names: Vec<&str> = servers.iter().map(ServerName::as_str).collect();
        json!({"name": tool, "servers": names, "text": collision_text(&name, servers)})
    }

    /// Why the principal cannot use the tool; `None` if it sees the tool and can call it.
    fn cause(
        &self,
        tool: &str,
        place: Option<&ToolLocation>,
        told: &Explanation,
        suggestions: &[String],
    ) -> Option<Cause> {
        let directory = self.shared.directory.load();
        let name = ExposedName::new(tool);
        if let Some(servers) = directory.tools.refused(&name) {
            return Some(Cause {
                code: "collision",
                why: collision_text(&name, servers),
                remedy: "Set `prefix: conflict` or `prefix: always`, or rename a server."
                    .to_owned(),
            });
        }
        match place {
            _ if !suggestions.is_empty() => Some(other_name_cause(suggestions)),
            None => Some(self.unknown_tool_cause(tool)),
            Some(place) if directory.tools.find(&name).is_none() => Some(not_listed_cause(place)),
            Some(place) => withheld_cause(place)
                .or_else(|| denied_cause(told))
                .or_else(|| unreachable_cause(&place.catalog)),
        }
    }

    fn unknown_tool_cause(&self, tool: &str) -> Cause {
        let catalogs = self.server_catalogs();
        let silent = catalogs.iter().filter(|it| it.last_tools("").is_none());
        let silent: Vec<String> = silent.map(|it| status_text(it)).collect();
        if self.guard().is_registered(tool) {
            return Cause {
                code: "no_server",
                why: format!(
                    "it is in the policy, but no server offers it{}",
                    silent_servers_text(&silent)
                ),
                remedy: "Add the server that has it, or take it out of the policy.".to_owned(),
            };
        }
        Cause {
            code: "unknown",
            why: format!(
                "no server behind this gateway lists such a tool{}",
                silent_servers_text(&silent)
            ),
            remedy: "Check the name; `GET /api/v1/servers` shows the servers' status.".to_owned(),
        }
    }
}

fn other_name_cause(suggestions: &[String]) -> Cause {
    let names: Vec<String> = suggestions.iter().map(|it| format!("`{it}`")).collect();
    let names = names.join(" or ");
    Cause {
        code: "other_name",
        why: format!("no tool has this name here. Did you mean {names}?"),
        remedy: format!("Call it {names}."),
    }
}

/// The cause for a name with the prefix of a server that does not list the rest.
fn not_listed_cause(place: &ToolLocation) -> Cause {
    let server = place.catalog.upstream.name();
    match place.catalog.last_tools("") {
        None => Cause {
            code: "not_listed_yet",
            why: format!(
                "server {} and has not listed its tools yet",
                status_text(&place.catalog)
            ),
            remedy: format!("Check server `{server}`, or wait until it answers."),
        },
        Some(list) => Cause {
            code: "not_listed",
            why: format!(
                "server `{server}` lists {} tools, and none is called `{}`",
                list.tools.len(),
                place.tool
            ),
            remedy: "Check the name, and that the server still has it.".to_owned(),
        },
    }
}

/// The cause for a tool that the watch withholds.
fn withheld_cause(place: &ToolLocation) -> Option<Cause> {
    let treated = tool_action_of(place)?;
    let text = |name: &str| treated.get(name).and_then(Value::as_str);
    let (code, word) = match text("kind")? {
        "quarantine" => ("quarantined", "is quarantined"),
        "hide" => ("hidden", "is hidden"),
        "block-server" => ("blocked", "is withheld with everything of its server"),
        _ => return None,
    };
    let why = text("why").unwrap_or_default();
    let (alert, remedy) = match text("alert") {
        Some(alert) => (
            format!(" (alert {alert})"),
            format!("Review the change and approve alert {alert}: `POST /api/v1/approve`."),
        ),
        None => {
            let remedy = "Review what changed (`GET /api/v1/changes`) and approve it.";
            (String::new(), remedy.to_owned())
        }
    };
    Some(Cause {
        code,
        why: format!("it {word}: {why}{alert}"),
        remedy,
    })
}

fn denied_cause(told: &Explanation) -> Option<Cause> {
    (!told.callable).then(|| Cause {
        code: "gate",
        why: told.reason.clone(),
        remedy: told.remedy.clone(),
    })
}

/// The cause for a server that would not answer a call now.
fn unreachable_cause(catalog: &ServerCatalog) -> Option<Cause> {
    let health = catalog.upstream.status().health;
    let is_away = matches!(
        health,
        UpstreamHealth::Down | UpstreamHealth::Failed | UpstreamHealth::Closed
    );
    is_away.then(|| Cause {
        code: "server_away",
        why: format!("its server {}, so that calls fail", status_text(catalog)),
        remedy: "Check the server; `POST /api/v1/servers/{name}/retry` tries it at once."
            .to_owned(),
    })
}

fn tool_action_of(place: &ToolLocation) -> Option<Value> {
    let lists = place.catalog.known_tools();
    let has = |list: &&Arc<ServerToolList>| list.tool(&place.tool).is_some();
    // The list of a variant counts only if no other client is offered the tool.
    let is_own = |list: &&Arc<ServerToolList>| list.variant.is_none();
    let any_own = lists.iter().filter(is_own).any(|list| has(&list));
    // A tool that one list withholds is withheld.
    let mut treated = lists
        .iter()
        .filter(|list| is_own(list) || !any_own)
        .filter_map(|list| Some(treatment_json(list, list.tool(&place.tool)?)));
    let first = treated.next()?;
    let served = |it: &Value| it.get("kind").and_then(Value::as_str) == Some("serve");
    if served(&first) {
        return Some(treated.find(|it| !served(it)).unwrap_or(first));
    }
    Some(first)
}

fn server_json(place: &ToolLocation, admin: bool) -> Value {
    let upstream = &place.catalog.upstream;
    let status = upstream.status();
    let list = place.catalog.last_tools("");
    let error = status.last_error.filter(|_| admin);
    json!({
        "name": upstream.name(),
        "tool": place.tool.as_str(),
        "health": status.health.as_str(),
        "lists_it": list.as_ref().is_some_and(|it| it.tool(&place.tool).is_some()),
        "list_age": list.map(|it| rounded_seconds(it.age())),
        "last_error": error.map(|it| it.text),
    })
}

fn status_text(catalog: &ServerCatalog) -> String {
    let health = catalog.upstream.status().health;
    format!("`{}` is {}", catalog.upstream.name(), health.as_str())
}

/// A sentence with a full stop.
fn with_full_stop(text: String) -> String {
    if text.ends_with(['.', '?', '!']) {
        text
    } else {
        text + "."
    }
}

/// The servers that may offer it and have not listed anything yet.
fn silent_servers_text(silent: &[String]) -> String {
    if silent.is_empty() {
        return String::new();
    }
    format!("; not all have listed theirs: {}", silent.join(", "))
}
