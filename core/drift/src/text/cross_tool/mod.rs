//! Findings that need the other tools: colliding names and references to other tools.

mod collisions;
mod reference;
mod similar_names;

use toolwarden_model::json::{Pointer, Value};

use super::character::quote;
use super::definition_parts;
use super::finding::{TextFinding, Weight};

pub(super) use reference::{is_distinctive, tokens};

/// One tool of a server, for the comparison with other tools.
#[derive(Clone, Copy, Debug)]
pub struct ServerTool<'a> {
    /// The server that offers it.
    pub server: &'a str,
    /// Its name there.
    pub name: &'a str,
    /// Its definition.
    pub definition: &'a Value,
}

impl ServerTool<'_> {
    /// The pointer to the name in the definition, or the root.
    fn name_pointer(&self) -> Pointer {
        name_pointer(self.definition)
    }

    fn quoted(&self) -> String {
        format!("{} of server {}", quote(self.name), quote(self.server))
    }
}

/// The pointer to the name in a definition, or the root.
#[must_use]
pub fn name_pointer(definition: &Value) -> Pointer {
    definition_parts::tool_name(definition).map_or_else(Pointer::root, |(pointer, _)| pointer)
}

/// Findings that need the other tools, each with the index of its tool.
///
/// Both sides of a collision get a finding, in the order of the tools. Findings below the weight are
/// left out, and detectors that only give lighter findings do not run.
#[must_use]
pub fn scan_across_tools(tools: &[ServerTool<'_>], least: Weight) -> Vec<(usize, TextFinding)> {
    let mut findings = collisions::scan(tools);
    let mut servers = tools.iter().map(|tool| tool.server);
    let first = servers.next();
    // These are about tools of another server.
    if servers.any(|server| Some(server) != first) {
        if least <= similar_names::WEIGHT {
            findings.extend(similar_names::scan(tools));
        }
        findings.extend(reference::scan(tools));
    }
    findings.retain(|(_, finding)| finding.weight >= least);
    findings.sort_by_key(|(index, _)| *index);
    findings
}
