//! Which tool of which server a name means, so that the policy's rules follow the tool.

use std::sync::Arc;

use toolwarden_guard::ToolIdentity;
use toolwarden_model::{ExposedName, OwnName, ServerName};

use super::tool_names::{NamingRules, OriginalName, ShownNames};

impl NamingRules {
    /// The identity of a tool. `servers` are all servers behind the gateway, whether they are up or not.
    #[must_use]
    pub fn identity(
        &self,
        named: &OriginalName,
        names: &ShownNames,
        servers: &[ServerName],
    ) -> ToolIdentity {
        let OriginalName { server, name } = named;
        let qualified = self.qualified_name(server, name);
        let other = |text: &str| {
            let mut others = servers.iter().filter(|it| *it != server);
            let found = others.find(|it| self.has_server_prefix(text, it));
            found.map(|it| Arc::clone(it.as_arc()))
        };
        ToolIdentity {
            alone: names.is_unique(server, name),
            imitates: other(name.as_str()),
            overlaps: other(&qualified),
            server: server.clone(),
            name: name.clone(),
            qualified,
        }
    }

    /// The name of a tool, prefixed with that of its server.
    #[must_use]
    pub fn qualified_name(&self, server: &ServerName, name: &OwnName) -> Arc<str> {
        format!("{server}{}{name}", self.separator).into()
    }

    /// Whether a name has the prefix of a server's qualified names.
    pub(crate) fn has_server_prefix(&self, name: &str, server: &ServerName) -> bool {
        self.without_prefix(name, server).is_some()
    }

    /// What a server would call a tool whose name has the server's prefix.
    pub(crate) fn own_name(&self, name: &ExposedName, server: &ServerName) -> Option<OwnName> {
        self.without_prefix(name.as_str(), server).map(OwnName::new)
    }

    fn without_prefix<'n>(&self, name: &'n str, server: &ServerName) -> Option<&'n str> {
        let rest = name.strip_prefix(server.as_str())?;
        rest.strip_prefix(&self.separator)
    }
}

/// Why a tool is withheld whose name a reader may trim: it could be mistaken for another tool.
pub(crate) fn malformed_name(name: &OwnName) -> Option<String> {
    let name = name.as_str();
    let trimmed = |c: char| c.is_whitespace() || c.is_control();
    let is_malformed = name.is_empty() || name.starts_with(trimmed) || name.ends_with(trimmed);
    is_malformed.then(|| {
        format!(
            "its name `{}` has white space or control characters around it",
            name.escape_debug()
        )
    })
}
