//! Names as agents see them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;
use toolwarden_warden::settings::PrefixMode;

/// How names are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// When the name of the server is put before them.
    pub mode: PrefixMode,
    /// What stands between the two.
    pub separator: String,
}

/// What agents call things, and what those are.
#[derive(Debug, Default)]
pub struct Names {
    served: HashMap<Arc<str>, Named>,
    /// By server, then by the server's own name.
    shown: HashMap<Arc<str>, HashMap<Arc<str>, Arc<str>>>,
    refused: BTreeMap<Arc<str>, Vec<Arc<str>>>,
}

/// Whose something is, and what its server calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The server.
    pub server: Arc<str>,
    /// The server's own name.
    pub name: Arc<str>,
}

impl Naming {
    /// Names what servers have. What two of them would share is refused to both.
    #[must_use]
    pub fn assign<'n>(
        &self,
        offered: impl IntoIterator<Item = (&'n Arc<str>, BTreeSet<Arc<str>>)>,
    ) -> Names {
        let offered: Vec<_> = offered.into_iter().collect();
        let mut holders: BTreeMap<&str, usize> = BTreeMap::new();
        for name in offered.iter().flat_map(|(_, names)| names) {
            *holders.entry(name).or_default() += 1;
        }
        let mut wanted: BTreeMap<Arc<str>, Vec<Named>> = BTreeMap::new();
        for (server, names) in &offered {
            for name in names {
                let alone = holders.get(&**name) == Some(&1);
                let shown = self.shown(server, name, alone);
                wanted.entry(shown).or_default().push(Named {
                    server: Arc::clone(server),
                    name: Arc::clone(name),
                });
            }
        }
        let mut names = Names::default();
        for (shown, mut wanting) in wanted {
            match (wanting.pop(), wanting.is_empty()) {
                (Some(named), true) => {
                    let of_server = names.shown.entry(Arc::clone(&named.server)).or_default();
                    of_server.insert(Arc::clone(&named.name), Arc::clone(&shown));
                    names.served.insert(shown, named);
                }
                (last, _) => {
                    wanting.extend(last);
                    let servers = wanting.into_iter().map(|it| it.server).collect();
                    names.refused.insert(shown, servers);
                }
            }
        }
        names
    }

    fn shown(&self, server: &Arc<str>, name: &Arc<str>, alone: bool) -> Arc<str> {
        let prefixed = match self.mode {
            PrefixMode::Always => true,
            PrefixMode::Conflict => !alone,
            PrefixMode::Never => false,
        };
        if prefixed {
            format!("{server}{}{name}", self.separator).into()
        } else {
            Arc::clone(name)
        }
    }
}

impl Names {
    /// What an agent means by a name.
    #[must_use]
    pub fn find(&self, shown: &str) -> Option<&Named> {
        self.served.get(shown)
    }

    /// What agents call something of a server.
    #[must_use]
    pub fn shown(&self, server: &str, name: &str) -> Option<&Arc<str>> {
        self.shown.get(server)?.get(name)
    }

    /// The servers that would share a name, where it is refused for that.
    #[must_use]
    pub fn refused(&self, shown: &str) -> Option<&[Arc<str>]> {
        self.refused.get(shown).map(Vec::as_slice)
    }

    /// Every refused name with the servers that would share it.
    pub fn collisions(&self) -> impl Iterator<Item = (&Arc<str>, &[Arc<str>])> {
        self.refused.iter().map(|(name, it)| (name, it.as_slice()))
    }
}

/// What is told of a name that is refused.
#[must_use]
pub fn collision(name: &str, servers: &[Arc<str>]) -> String {
    let servers: Vec<String> = servers.iter().map(|it| format!("`{it}`")).collect();
    format!(
        "`{name}` is refused: the servers {} both have it; set `prefix: conflict` or `prefix: always`, or rename a server",
        servers.join(" and ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(mode: PrefixMode, servers: &[(&str, &[&str])]) -> Names {
        let servers: Vec<(Arc<str>, BTreeSet<Arc<str>>)> = servers
            .iter()
            .map(|(server, names)| {
                (
                    (*server).into(),
                    names.iter().map(|it| (*it).into()).collect(),
                )
            })
            .collect();
        let naming = Naming {
            mode,
            separator: "__".to_owned(),
        };
        naming.assign(
            servers
                .iter()
                .map(|(server, names)| (server, names.clone())),
        )
    }

    fn means(names: &Names, shown: &str) -> Option<String> {
        let named = names.find(shown)?;
        assert_eq!(
            names.shown(&named.server, &named.name).map(|it| &**it),
            Some(shown)
        );
        Some(format!("{} of {}", named.name, named.server))
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
            assert_eq!(means(&names, shown).as_deref(), meant, "{mode:?} {shown}");
        }
    }

    #[test]
    fn what_two_servers_share_is_refused_to_both() {
        let never = names(PrefixMode::Never, &[("a", &["x"]), ("b", &["x"])]);
        assert_eq!(
            collision("x", never.refused("x").unwrap()),
            "`x` is refused: the servers `a` and `b` both have it; set `prefix: conflict` or `prefix: always`, or rename a server"
        );
        let always = names(PrefixMode::Always, &[("a", &["b__x"]), ("a__b", &["x"])]);
        assert_eq!(always.refused("a__b__x").map(<[_]>::len), Some(2));
        let conflict = names(
            PrefixMode::Conflict,
            &[("a", &["x", "a__x"]), ("b", &["x"])],
        );
        assert_eq!(conflict.refused("a__x").map(<[_]>::len), Some(2));
        assert_eq!(means(&conflict, "b__x").as_deref(), Some("x of b"));
    }
}
