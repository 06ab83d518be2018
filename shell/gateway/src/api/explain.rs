//! Why a principal sees a tool or does not.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_guard::FeatureKind;
use toolwarden_warden::guard::{Call, Explanation};

use super::answer::{Answer, seconds};
use super::asking::Asking;
use super::looked::treatment;
use super::route::Handled;
use crate::catalogue::{Kind, Shelf, ToolList, collision};
use crate::gateway::Gateway;
use crate::upstream::Health;

/// What stands in the way of a tool, or that nothing does.
struct Cause {
    code: &'static str,
    /// Continues the sentence "… does not see …:".
    why: String,
    remedy: String,
}

/// Where a tool would be.
struct Whereabouts {
    shelf: Arc<Shelf>,
    /// What the server calls it.
    tool: String,
}

/// `GET /explain`
pub(super) async fn explain(asking: Asking) -> Handled {
    let principal = asking.about("explain")?;
    let (gateway, given) = (asking.gateway(), &asking.given);
    let (tool, session) = (given.needed("tool")?, given.text("session"));
    let guard = gateway.guard();
    let is_tool = gateway.whereabouts(tool).is_some() || guard.is_registered(tool);
    if let Some((kind, name)) = feature(tool).filter(|_| !is_tool) {
        return explain_feature(&asking, &principal, (kind, name));
    }
    let told = guard.why_not_call(&Call {
        tool,
        principal: &principal,
        session,
        groups: asking.groups(),
        claims: asking.claims(&principal),
        ..Call::default()
    });
    let place = gateway.whereabouts(tool);
    let suggestions = gateway.suggestions(tool);
    let listed = gateway.shared.directory.load().tools.find(tool).is_some();
    let cause = gateway.cause(tool, place.as_ref(), &told, &suggestions);
    let visible = listed && told.visible;
    let sentence = match &cause {
        Some(cause) if visible => ended(format!("`{principal}` sees `{tool}`, but {}", cause.why)),
        Some(cause) => ended(format!(
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
    Ok(Answer::document(
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
            "server": place.as_ref().map(|it| server(it, asking.is_admin())),
            "treatment": place.as_ref().and_then(treated),
            "collision": gateway.collision(tool),
            "suggestions": suggestions,
        }),
    ))
}

/// What is meant by a name as records have it, such as `resource:file:///plan`; none is a tool.
fn feature(name: &str) -> Option<(FeatureKind, &str)> {
    let (kind, name) = name.split_once(':')?;
    let kind = FeatureKind::from_word(kind).filter(|it| *it != FeatureKind::Tool);
    Some((kind?, name))
}

/// Why a principal may use something besides a tool or may not, as far as the lists of servers are known.
fn explain_feature(asking: &Asking, principal: &str, (kind, name): (FeatureKind, &str)) -> Handled {
    let (gateway, session) = (asking.gateway(), asking.given.text("session"));
    let known = gateway.known_feature(kind, name);
    let told = gateway.guard().why_not_call(&Call {
        feature: Some(known.feature()),
        principal,
        session,
        groups: asking.groups(),
        claims: asking.claims(principal),
        ..Call::default()
    });
    let cause = match &known.shelf {
        None => Some(Cause {
            code: "unknown",
            why: format!(
                "no list of a server is known to have it{}",
                gateway.unlisted(kind)
            ),
            remedy: "Have an agent list what servers offer, and check the name.".to_owned(),
        }),
        Some(shelf) => refused(&told).or_else(|| away(shelf)),
    };
    let what = format!("{kind} `{name}`");
    let (sentence, code, remedy) = match cause {
        Some(cause) => (
            ended(format!("`{principal}` may not use {what}: {}", cause.why)),
            cause.code,
            cause.remedy,
        ),
        None => (
            format!("`{principal}` sees {what} and may use it."),
            "visible",
            "Nothing needs to change.".to_owned(),
        ),
    };
    let is_known = known.shelf.is_some();
    let server = known.shelf.as_ref().map(|shelf| {
        let status = shelf.upstream.status();
        let error = status.last_error.filter(|_| asking.is_admin());
        json!({
            "name": shelf.upstream.name(),
            "tool": name,
            "health": status.health.as_str(),
            "lists_it": true,
            "list_age": null,
            "last_error": error.map(|it| it.text),
        })
    });
    let mut gates = told.document();
    Ok(Answer::document(
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
    /// Servers whose lists of a kind are not known yet, in words that go on.
    fn unlisted(&self, kind: FeatureKind) -> String {
        let lists = match kind {
            FeatureKind::Prompt => Kind::Prompts,
            FeatureKind::Skill => Kind::Skills,
            FeatureKind::Resource | FeatureKind::Tool | FeatureKind::Method => Kind::Resources,
        };
        let shelves = self.shelves();
        let silent = shelves
            .iter()
            .filter(|it| it.known_others(lists).is_empty());
        let silent: Vec<String> = silent.map(|it| in_words(it)).collect();
        also(&silent)
    }

    /// Where a tool is by its name, or would be by the server's name before it.
    fn whereabouts(&self, tool: &str) -> Option<Whereabouts> {
        let directory = self.shared.directory.load();
        if let Some(named) = directory.tools.find(tool) {
            return Some(Whereabouts {
                shelf: self.shelf(&named.server)?,
                tool: named.name.to_string(),
            });
        }
        let separator = self.settings().separator.clone();
        let shelves = self.shelves();
        let prefixed = shelves.iter().filter_map(|shelf| {
            let rest = tool.strip_prefix(shelf.upstream.name())?;
            let rest = rest.strip_prefix(&separator)?;
            Some(Whereabouts {
                shelf: Arc::clone(shelf),
                tool: rest.to_owned(),
            })
        });
        // One server's name may begin with another's.
        prefixed.max_by_key(|it| it.shelf.upstream.name().len())
    }

    /// Names that may have been meant: the same tool under the name agents know, else the nearest.
    fn suggestions(&self, tool: &str) -> Vec<String> {
        let directory = self.shared.directory.load();
        if directory.tools.find(tool).is_some() {
            return Vec::new();
        }
        let mut names = Vec::new();
        for shelf in self.shelves().iter() {
            let server = shelf.upstream.name();
            // The server's own name, or the prefixed form of one that goes without.
            let prefix = format!("{server}{}", self.settings().separator);
            let own = [Some(tool), tool.strip_prefix(&prefix)];
            for own in own.into_iter().flatten() {
                names.extend(directory.tools.shown(server, own).map(ToString::to_string));
            }
        }
        // What the policy names is called so, whoever has it.
        if names.is_empty() && !self.guard().is_registered(tool) {
            let known = self.guard().tool_names();
            let offered = known.iter().map(String::as_str);
            let offered = offered.filter(|name| directory.tools.find(name).is_some());
            let nearest = toolwarden_model::closest(tool, offered);
            names.extend(nearest.split('`').nth(1).map(str::to_owned));
        }
        names.dedup();
        names
    }

    fn collision(&self, tool: &str) -> Value {
        let directory = self.shared.directory.load();
        let Some(servers) = directory.tools.refused(tool) else {
            return Value::Null;
        };
        let names: Vec<&str> = servers.iter().map(|it| &**it).collect();
        json!({"name": tool, "servers": names, "text": collision(tool, servers)})
    }

    /// What stands in the way; none where the tool is seen and can be called.
    fn cause(
        &self,
        tool: &str,
        place: Option<&Whereabouts>,
        told: &Explanation,
        suggestions: &[String],
    ) -> Option<Cause> {
        let directory = self.shared.directory.load();
        if let Some(servers) = directory.tools.refused(tool) {
            return Some(Cause {
                code: "collision",
                why: collision(tool, servers),
                remedy: "Set `prefix: conflict` or `prefix: always`, or rename a server."
                    .to_owned(),
            });
        }
        match place {
            _ if !suggestions.is_empty() => Some(other_name(suggestions)),
            None => Some(self.nowhere_cause(tool)),
            Some(place) if directory.tools.find(tool).is_none() => Some(not_listed(place)),
            Some(place) => withheld(place)
                .or_else(|| refused(told))
                .or_else(|| away(&place.shelf)),
        }
    }

    fn nowhere_cause(&self, tool: &str) -> Cause {
        let shelves = self.shelves();
        let silent = shelves.iter().filter(|it| it.last_tools("").is_none());
        let silent: Vec<String> = silent.map(|it| in_words(it)).collect();
        if self.guard().is_registered(tool) {
            return Cause {
                code: "no_server",
                why: format!(
                    "it is in the policy, but no server offers it{}",
                    also(&silent)
                ),
                remedy: "Add the server that has it, or take it out of the policy.".to_owned(),
            };
        }
        Cause {
            code: "unknown",
            why: format!(
                "no server behind this gateway lists such a tool{}",
                also(&silent)
            ),
            remedy: "Check the name; `GET /api/v1/servers` says how the servers fare.".to_owned(),
        }
    }
}

fn other_name(suggestions: &[String]) -> Cause {
    let names: Vec<String> = suggestions.iter().map(|it| format!("`{it}`")).collect();
    let names = names.join(" or ");
    Cause {
        code: "other_name",
        why: format!("no tool goes by this name here. Did you mean {names}?"),
        remedy: format!("Call it {names}."),
    }
}

/// Of a name that begins with that of a server which does not list the rest.
fn not_listed(place: &Whereabouts) -> Cause {
    let server = place.shelf.upstream.name();
    match place.shelf.last_tools("") {
        None => Cause {
            code: "not_listed_yet",
            why: format!(
                "server {} and has not listed its tools yet",
                in_words(&place.shelf)
            ),
            remedy: format!("See to server `{server}`, or wait until it answers."),
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

/// Of a tool that the watch does not let through.
fn withheld(place: &Whereabouts) -> Option<Cause> {
    let treated = treated(place)?;
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

fn refused(told: &Explanation) -> Option<Cause> {
    (!told.callable).then(|| Cause {
        code: "gate",
        why: told.reason.clone(),
        remedy: told.remedy.clone(),
    })
}

/// Of a server that would not answer a call now.
fn away(shelf: &Shelf) -> Option<Cause> {
    let health = shelf.upstream.status().health;
    let is_away = matches!(health, Health::Down | Health::Failed | Health::Closed);
    is_away.then(|| Cause {
        code: "server_away",
        why: format!("its server {}, so that calls fail", in_words(shelf)),
        remedy: "See to the server; `POST /api/v1/servers/{name}/retry` tries it at once."
            .to_owned(),
    })
}

fn treated(place: &Whereabouts) -> Option<Value> {
    let lists = place.shelf.known_tools();
    let has = |list: &&Arc<ToolList>| list.tool(&place.tool).is_some();
    // What clients with other capabilities are offered counts where no other client is offered the tool.
    let is_own = |list: &&Arc<ToolList>| list.variant.is_none();
    let any_own = lists.iter().filter(is_own).any(|list| has(&list));
    // What one list withholds is withheld.
    let mut treated = lists
        .iter()
        .filter(|list| is_own(list) || !any_own)
        .filter_map(|list| Some(treatment(list, list.tool(&place.tool)?)));
    let first = treated.next()?;
    let served = |it: &Value| it.get("kind").and_then(Value::as_str) == Some("serve");
    if served(&first) {
        return Some(treated.find(|it| !served(it)).unwrap_or(first));
    }
    Some(first)
}

fn server(place: &Whereabouts, admin: bool) -> Value {
    let upstream = &place.shelf.upstream;
    let status = upstream.status();
    let list = place.shelf.last_tools("");
    let error = status.last_error.filter(|_| admin);
    json!({
        "name": upstream.name(),
        "tool": place.tool,
        "health": status.health.as_str(),
        "lists_it": list.as_ref().is_some_and(|it| it.tool(&place.tool).is_some()),
        "list_age": list.map(|it| seconds(it.age())),
        "last_error": error.map(|it| it.text),
    })
}

fn in_words(shelf: &Shelf) -> String {
    let health = shelf.upstream.status().health;
    format!("`{}` is {}", shelf.upstream.name(), health.as_str())
}

/// A sentence with its end.
fn ended(text: String) -> String {
    if text.ends_with(['.', '?', '!']) {
        text
    } else {
        text + "."
    }
}

/// Servers that may have it and have said nothing yet.
fn also(silent: &[String]) -> String {
    if silent.is_empty() {
        return String::new();
    }
    format!("; not all have listed theirs: {}", silent.join(", "))
}
