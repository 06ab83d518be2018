//! The names that agents see.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use toolwarden_model::{ExposedName, OwnName, ServerName};
use toolwarden_settings::PrefixMode;

/// The rules for names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamingRules {
    /// When the name of the server is prefixed.
    pub mode: PrefixMode,
    /// The separator between the two.
    pub separator: String,
}

/// What a server offers, and whether it is served.
pub type OfferedNames = BTreeMap<OwnName, bool>;

/// Maps the names that agents see to servers and their own names.
#[derive(Debug, Default)]
pub struct ShownNames {
    served: HashMap<ExposedName, OriginalName>,
    /// By server, then by the server's own name.
    shown: HashMap<ServerName, HashMap<OwnName, ExposedName>>,
    /// Names that only one server serves, with that server.
    unique: HashMap<OwnName, ServerName>,
    colliding: BTreeMap<ExposedName, Vec<ServerName>>,
}

/// A server and its own name for an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalName {
    /// The server.
    pub server: ServerName,
    /// The server's own name.
    pub name: OwnName,
}

impl NamingRules {
    /// Names what servers offer. A name that two servers would share is refused to both, unless only one of them
    /// serves it: withheld entries do not reserve names.
    #[must_use]
    pub fn assign<'n>(
        &self,
        offered: impl IntoIterator<Item = (&'n ServerName, OfferedNames)>,
    ) -> ShownNames {
        let offered: Vec<_> = offered.into_iter().collect();
        let servers: Vec<&ServerName> = offered.iter().map(|(server, _)| *server).collect();
        let mut holders: BTreeMap<&OwnName, (usize, usize)> = BTreeMap::new();
        for (name, is_served) in offered.iter().flat_map(|(_, names)| names) {
            let (all, serving) = holders.entry(name).or_default();
            *all += 1;
            *serving += usize::from(*is_served);
        }
        let mut wanted: BTreeMap<ExposedName, Vec<(OriginalName, bool)>> = BTreeMap::new();
        let mut result = ShownNames::default();
        for (server, names) in &offered {
            for (name, is_served) in names {
                let alone = match holders.get(name) {
                    _ if self.imitates(name, server, &servers) => false,
                    Some((1, _)) => true,
                    Some((_, 1)) => *is_served,
                    _ => false,
                };
                if alone {
                    result.unique.insert(name.clone(), (*server).clone());
                }
                let shown = self.shown_name(server, name, alone);
                let named = OriginalName {
                    server: (*server).clone(),
                    name: name.clone(),
                };
                wanted.entry(shown).or_default().push((named, *is_served));
            }
        }
        for (shown, wanting) in wanted {
            let serving = wanting.iter().filter(|(_, is_served)| *is_served).count();
            let wanting = wanting.into_iter();
            let mut wanting: Vec<OriginalName> = wanting
                .filter(|(_, is_served)| serving != 1 || *is_served)
                .map(|(named, _)| named)
                .collect();
            match (wanting.pop(), wanting.is_empty()) {
                (Some(named), true) => {
                    let of_server = result.shown.entry(named.server.clone()).or_default();
                    of_server.insert(named.name.clone(), shown.clone());
                    result.served.insert(shown, named);
                }
                (last, _) => {
                    wanting.extend(last);
                    let servers = wanting.into_iter().map(|it| it.server).collect();
                    result.colliding.insert(shown, servers);
                }
            }
        }
        result
    }

    /// Whether a name without a prefix could be mistaken for a prefixed name of another server.
    fn imitates(&self, name: &OwnName, server: &ServerName, servers: &[&ServerName]) -> bool {
        let mut others = servers.iter().filter(|it| **it != server);
        others.any(|other| self.has_server_prefix(name.as_str(), other))
    }

    fn shown_name(&self, server: &ServerName, name: &OwnName, alone: bool) -> ExposedName {
        let prefixed = match self.mode {
            PrefixMode::Always => true,
            PrefixMode::Conflict => !alone,
            PrefixMode::Never => false,
        };
        ExposedName::new(if prefixed {
            self.qualified_name(server, name)
        } else {
            Arc::clone(name.as_arc())
        })
    }
}

impl ShownNames {
    /// Resolves a name that an agent uses.
    #[must_use]
    pub fn find(&self, shown: &ExposedName) -> Option<&OriginalName> {
        self.served.get(shown)
    }

    /// The name by which agents know an entry of a server.
    #[must_use]
    pub fn shown_name(&self, server: &ServerName, name: &OwnName) -> Option<&ExposedName> {
        self.shown.get(server)?.get(name)
    }

    /// The names of all entries of a server that agents see.
    pub fn shown_names(&self, server: &ServerName) -> impl Iterator<Item = &ExposedName> {
        let of_server = self.shown.get(server).into_iter();
        of_server.flat_map(HashMap::values)
    }

    /// Whether a server is the only one that serves this name.
    #[must_use]
    pub fn is_unique(&self, server: &ServerName, name: &OwnName) -> bool {
        self.unique.get(name) == Some(server)
    }

    /// The servers that would share a name, if it is refused for that reason.
    #[must_use]
    pub fn refused(&self, shown: &ExposedName) -> Option<&[ServerName]> {
        self.colliding.get(shown).map(Vec::as_slice)
    }

    /// Every refused name with the servers that would share it.
    pub fn collisions(&self) -> impl Iterator<Item = (&ExposedName, &[ServerName])> {
        self.colliding
            .iter()
            .map(|(name, it)| (name, it.as_slice()))
    }
}

/// The message for a refused name.
#[must_use]
pub fn collision_text(name: &ExposedName, servers: &[ServerName]) -> String {
    let servers: Vec<String> = servers.iter().map(|it| format!("`{it}`")).collect();
    format!(
        "`{name}` is refused: the servers {} both have it; set `prefix: conflict` or `prefix: always`, or rename a server",
        servers.join(" and ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(mode: PrefixMode, servers: &[(&str, &[&str])]) -> ShownNames {
        let own = |it: &&str| (OwnName::new(it.trim_end_matches('?')), !it.ends_with('?'));
        let servers: Vec<(ServerName, OfferedNames)> = servers
            .iter()
            .map(|(server, names)| (ServerName::new(*server), names.iter().map(own).collect()))
            .collect();
        let naming = NamingRules {
            mode,
            separator: "__".to_owned(),
        };
        naming.assign(
            servers
                .iter()
                .map(|(server, names)| (server, names.clone())),
        )
    }

    fn original(names: &ShownNames, shown: &str) -> Option<String> {
        let shown = ExposedName::new(shown);
        let named = names.find(&shown)?;
        assert_eq!(names.shown_name(&named.server, &named.name), Some(&shown));
        Some(format!("{} of {}", named.name, named.server))
    }

    /// `?` marks a withheld entry.
    #[test]
    fn what_is_withheld_takes_no_name_away() {
        let servers: [(&str, &[&str]); 2] = [("bank", &["pay"]), ("evil", &["pay?"])];
        let conflict = names(PrefixMode::Conflict, &servers);
        assert_eq!(original(&conflict, "pay").unwrap(), "pay of bank");
        assert_eq!(original(&conflict, "evil__pay").unwrap(), "pay of evil");
        let never = names(PrefixMode::Never, &servers);
        assert_eq!(original(&never, "pay").unwrap(), "pay of bank");
        let both: [(&str, &[&str]); 2] = [("a", &["x?"]), ("b", &["x?"])];
        assert!(
            names(PrefixMode::Never, &both)
                .refused(&ExposedName::new("x"))
                .is_some()
        );
    }

    #[test]
    fn a_name_that_passes_for_another_servers_is_prefixed() {
        let servers: [(&str, &[&str]); 3] = [
            ("bank", &["pay"]),
            ("people", &["pay"]),
            ("evil", &["bank__pay", "people__approve"]),
        ];
        let names = names(PrefixMode::Conflict, &servers);
        assert_eq!(original(&names, "bank__pay").unwrap(), "pay of bank");
        let own = original(&names, "evil__bank__pay").unwrap();
        assert_eq!(own, "bank__pay of evil");
        assert_eq!(original(&names, "people__approve"), None);
        assert!(!names.is_unique(&ServerName::new("evil"), &OwnName::new("bank__pay")));
    }

    #[test]
    fn prefixes_by_mode() {
        let servers: &[(&str, &[&str])] = &[("a", &["x", "y"]), ("b", &["x"])];
        for (mode, shown, meant) in [
            (PrefixMode::Always, "a__x", Some("x of a")),
            (PrefixMode::Always, "x", None),
            (PrefixMode::Conflict, "a__x", Some("x of a")),
            (PrefixMode::Conflict, "y", Some("y of a")),
            (PrefixMode::Never, "y", Some("y of a")),
            (PrefixMode::Never, "x", None),
        ] {
            let names = names(mode, servers);
            assert_eq!(
                original(&names, shown).as_deref(),
                meant,
                "{mode:?} {shown}"
            );
        }
    }

    #[test]
    fn what_two_servers_share_is_refused_to_both() {
        let never = names(PrefixMode::Never, &[("a", &["x"]), ("b", &["x"])]);
        assert_eq!(
            collision_text(
                &ExposedName::new("x"),
                never.refused(&ExposedName::new("x")).unwrap()
            ),
            "`x` is refused: the servers `a` and `b` both have it; set `prefix: conflict` or `prefix: always`, or rename a server"
        );
        let always = names(PrefixMode::Always, &[("a", &["b__x"]), ("a__b", &["x"])]);
        assert_eq!(
            always.refused(&ExposedName::new("a__b__x")).map(<[_]>::len),
            Some(2)
        );
        let conflict = names(
            PrefixMode::Conflict,
            &[("a", &["x", "a__x"]), ("b", &["x"])],
        );
        assert_eq!(
            conflict.refused(&ExposedName::new("a__x")).map(<[_]>::len),
            Some(2)
        );
        assert_eq!(original(&conflict, "b__x").as_deref(), Some("x of b"));
    }
}
