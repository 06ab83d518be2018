//! Which tool of which server a name means, so that the policy's rules follow the tool.

use std::sync::Arc;

use toolwarden_guard::ToolIdentity;

use super::tool_names::{NamingRules, OriginalName, ShownNames};

impl NamingRules {
    /// The identity of a tool. `servers` are all servers behind the gateway, whether they are up or not.
    #[must_use]
    pub fn identity(
        &self,
        named: &OriginalName,
        names: &ShownNames,
        servers: &[Arc<str>],
    ) -> ToolIdentity {
        let OriginalName { server, name } = named;
        let qualified: Arc<str> = format!("{server}{}{name}", self.separator).into();
        let other = |text: &str| {
            let mut others = servers.iter().filter(|it| *it != server);
            others.find(|it| self.has_server_prefix(text, it)).cloned()
        };
        ToolIdentity {
            alone: names.is_unique(server, name),
            imitates: other(name),
            overlaps: other(&qualified),
            name: Arc::clone(name),
            qualified,
        }
    }

    /// Whether a name has the prefix of a server's qualified names.
    pub(crate) fn has_server_prefix(&self, name: &str, server: &str) -> bool {
        let rest = name.strip_prefix(server);
        rest.is_some_and(|rest| rest.starts_with(&self.separator))
    }
}

/// Why a tool is withheld whose name a reader may trim: it could be mistaken for another tool.
pub(crate) fn malformed_name(name: &str) -> Option<String> {
    let trimmed = |c: char| c.is_whitespace() || c.is_control();
    let is_malformed = name.is_empty() || name.starts_with(trimmed) || name.ends_with(trimmed);
    is_malformed.then(|| {
        format!(
            "its name `{}` has white space or control characters around it",
            name.escape_debug()
        )
    })
}
