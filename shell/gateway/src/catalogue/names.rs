//! Names as agents see them.

use std::collections::BTreeMap;
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

/// What a server has, and whether it is served.
pub type Offered = BTreeMap<Arc<str>, bool>;

/// What agents call things, and what those are.
#[derive(Debug, Default)]
pub struct Names {
    served: HashMap<Arc<str>, Named>,
    /// By server, then by the server's own name.
    shown: HashMap<Arc<str>, HashMap<Arc<str>, Arc<str>>>,
    /// Names that just one server serves, with that server.
    alone: HashMap<Arc<str>, Arc<str>>,
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
    /// Names what servers have. What two of them would share is refused to both, unless just one of
    /// them serves it: nobody takes a name from somebody by offering what is withheld.
    #[must_use]
    pub fn assign<'n>(&self, offered: impl IntoIterator<Item = (&'n Arc<str>, Offered)>) -> Names {
        let offered: Vec<_> = offered.into_iter().collect();
        let servers: Vec<&Arc<str>> = offered.iter().map(|(server, _)| *server).collect();
        let mut holders: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (name, is_served) in offered.iter().flat_map(|(_, names)| names) {
            let (all, serving) = holders.entry(name).or_default();
            *all += 1;
            *serving += usize::from(*is_served);
        }
        let mut wanted: BTreeMap<Arc<str>, Vec<(Named, bool)>> = BTreeMap::new();
        let mut result = Names::default();
        for (server, names) in &offered {
            for (name, is_served) in names {
                let alone = match holders.get(&**name) {
                    _ if self.imitates(name, server, &servers) => false,
                    Some((1, _)) => true,
                    Some((_, 1)) => *is_served,
                    _ => false,
                };
                if alone {
                    let server = Arc::clone(server);
                    result.alone.insert(Arc::clone(name), server);
                }
                let shown = self.shown(server, name, alone);
                let named = Named {
                    server: Arc::clone(server),
                    name: Arc::clone(name),
                };
                wanted.entry(shown).or_default().push((named, *is_served));
            }
        }
        for (shown, wanting) in wanted {
            let serving = wanting.iter().filter(|(_, is_served)| *is_served).count();
            let wanting = wanting.into_iter();
            let mut wanting: Vec<Named> = wanting
                .filter(|(_, is_served)| serving != 1 || *is_served)
                .map(|(named, _)| named)
                .collect();
            match (wanting.pop(), wanting.is_empty()) {
                (Some(named), true) => {
                    let of_server = result.shown.entry(Arc::clone(&named.server)).or_default();
                    of_server.insert(Arc::clone(&named.name), Arc::clone(&shown));
                    result.served.insert(shown, named);
                }
                (last, _) => {
                    wanting.extend(last);
                    let servers = wanting.into_iter().map(|it| it.server).collect();
                    result.refused.insert(shown, servers);
                }
            }
        }
        result
    }

    /// Whether a name without a prefix would pass for one of another server with its prefix.
    fn imitates(&self, name: &str, server: &str, servers: &[&Arc<str>]) -> bool {
        let mut others = servers.iter().filter(|it| ****it != *server);
        others.any(|other| self.is_of(name, other))
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

    /// What agents call everything of a server.
    pub fn shown_of(&self, server: &str) -> impl Iterator<Item = &Arc<str>> {
        let of_server = self.shown.get(server).into_iter();
        of_server.flat_map(HashMap::values)
    }

    /// Whether a server is the only one that serves something of this name.
    #[must_use]
    pub fn is_alone(&self, server: &str, name: &str) -> bool {
        self.alone.get(name).is_some_and(|it| **it == *server)
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
        let servers: Vec<(Arc<str>, Offered)> = servers
            .iter()
            .map(|(server, names)| {
                (
                    (*server).into(),
                    names
                        .iter()
                        .map(|it| (it.trim_end_matches('?').into(), !it.ends_with('?')))
                        .collect(),
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

    /// `?` marks what is withheld.
    #[test]
    fn what_is_withheld_takes_no_name_away() {
        let servers: [(&str, &[&str]); 2] = [("bank", &["pay"]), ("evil", &["pay?"])];
        let conflict = names(PrefixMode::Conflict, &servers);
        assert_eq!(means(&conflict, "pay").unwrap(), "pay of bank");
        assert_eq!(means(&conflict, "evil__pay").unwrap(), "pay of evil");
        let never = names(PrefixMode::Never, &servers);
        assert_eq!(means(&never, "pay").unwrap(), "pay of bank");
        let both: [(&str, &[&str]); 2] = [("a", &["x?"]), ("b", &["x?"])];
        assert!(names(PrefixMode::Never, &both).refused("x").is_some());
    }

    #[test]
    fn a_name_that_passes_for_another_servers_is_prefixed() {
        let servers: [(&str, &[&str]); 3] = [
            ("bank", &["pay"]),
            ("people", &["pay"]),
            ("evil", &["bank__pay", "people__approve"]),
        ];
        let names = names(PrefixMode::Conflict, &servers);
        assert_eq!(means(&names, "bank__pay").unwrap(), "pay of bank");
        let own = means(&names, "evil__bank__pay").unwrap();
        assert_eq!(own, "bank__pay of evil");
        assert_eq!(means(&names, "people__approve"), None);
        assert!(!names.is_alone("evil", "bank__pay"));
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
