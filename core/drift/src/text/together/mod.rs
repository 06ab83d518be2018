//! What only shows beside the other tools: names that collide and names that are borrowed.

mod collide;
mod nearby;
mod reference;

use toolwarden_model::json::{Pointer, Value};

use super::character::quote;
use super::finding::{Finding, Weight};
use super::place;

pub(super) use reference::{is_distinctive, tokens};

/// One tool as its neighbours see it.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The server that offers it.
    pub server: &'a str,
    /// Its name there.
    pub name: &'a str,
    /// Its definition.
    pub definition: &'a Value,
}

impl Named<'_> {
    /// Where the definition has the name, or the root.
    fn name_pointer(&self) -> Pointer {
        name_pointer(self.definition)
    }

    fn quoted(&self) -> String {
        format!("{} of server {}", quote(self.name), quote(self.server))
    }
}

/// Where a definition has its name, or the root.
#[must_use]
pub fn name_pointer(definition: &Value) -> Pointer {
    place::name(definition).map_or_else(Pointer::root, |(pointer, _)| pointer)
}

/// Findings that need the other tools, each with the index of the tool it is about.
///
/// Both sides of a collision get a finding. The order is that of the tools. Findings below the weight are
/// left out, and those that can only be lighter are not looked for.
#[must_use]
pub fn scan_together(tools: &[Named<'_>], least: Weight) -> Vec<(usize, Finding)> {
    let mut findings = collide::scan(tools);
    let mut servers = tools.iter().map(|tool| tool.server);
    let first = servers.next();
    // These are about tools of another server.
    if servers.any(|server| Some(server) != first) {
        if least <= nearby::WEIGHT {
            findings.extend(nearby::scan(tools));
        }
        findings.extend(reference::scan(tools));
    }
    findings.retain(|(_, finding)| finding.weight >= least);
    findings.sort_by_key(|(index, _)| *index);
    findings
}
