//! Which tool of which server a name stands for, so that the policy's rules follow the tool.

use std::sync::Arc;

use toolwarden_guard::ToolIdentity;

use super::names::{Named, Names, Naming};

impl Naming {
    /// Whose tool a tool is. `servers` are all servers behind the gateway, whether they are up or not.
    #[must_use]
    pub fn identity(&self, named: &Named, names: &Names, servers: &[Arc<str>]) -> ToolIdentity {
        let Named { server, name } = named;
        let qualified: Arc<str> = format!("{server}{}{name}", self.separator).into();
        let other = |text: &str| {
            let mut others = servers.iter().filter(|it| *it != server);
            others.find(|it| self.is_of(text, it)).cloned()
        };
        ToolIdentity {
            alone: names.is_alone(server, name),
            imitates: other(name),
            overlaps: other(&qualified),
            name: Arc::clone(name),
            qualified,
        }
    }

    /// Whether a name begins as the qualified names of a server do.
    pub(crate) fn is_of(&self, name: &str, server: &str) -> bool {
        let rest = name.strip_prefix(server);
        rest.is_some_and(|rest| rest.starts_with(&self.separator))
    }
}

/// Why a tool is withheld whose name a reader may trim: it would pass for another tool.
pub(crate) fn malformed(name: &str) -> Option<String> {
    let trimmed = |c: char| c.is_whitespace() || c.is_control();
    let is_malformed = name.is_empty() || name.starts_with(trimmed) || name.ends_with(trimmed);
    is_malformed.then(|| {
        format!(
            "its name `{}` has white space or control characters around it",
            name.escape_debug()
        )
    })
}
