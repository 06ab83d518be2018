//! Which source of callers names which principals, so that no source can name a principal of another.
//!
//! Names that the settings spell out (API keys, certificates without `*`, `anonymous`) belong to the
//! settings. All other names belong to a family: the names that begin with the `principal_prefix` of an
//! issuer, or with the text before the `*` of a certificate's principal. If families overlap, a name
//! belongs to the one with the longest prefix. A credential that names a principal of another source is
//! rejected.

use std::collections::BTreeSet;

use thiserror::Error;

use super::{AdminSettings, IdentitySettings, JwtSettings};

/// The source of a principal's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameSource {
    /// The settings spell it out.
    Settings,
    /// The subject of a client certificate.
    Certificates,
    /// A token of an issuer: the index of the first entry of `identity.jwt` with this issuer.
    Issuer(usize),
}

/// Which source names which principals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrincipalNames {
    explicit: BTreeSet<String>,
    families: Vec<(String, NameSource)>,
    /// The source of each entry of `identity.jwt`.
    issuers: Vec<NameSource>,
}

/// Why the source of a principal's name is ambiguous.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AmbiguousPrincipals {
    /// Two sources give the same names.
    #[error(
        "{one} and {other} would name the same principals; give each issuer a `principal_prefix` of its own"
    )]
    SameNames {
        /// The later entry of `identity.jwt`.
        index: usize,
        /// One source.
        one: String,
        /// The other source.
        other: String,
    },
    /// Several issuers could name an administrator.
    #[error(
        "the administrator `{principal}` does not say which issuer names it; write {{principal: {principal}, \
         issuer: …}}"
    )]
    Admin {
        /// The index in `identity.admins`.
        index: usize,
        /// The administrator.
        principal: String,
    },
    /// An administrator refers to an issuer that gives no such names.
    #[error(
        "no entry of `identity.jwt` with the issuer `{issuer}` names principals like `{principal}`"
    )]
    NoSuchIssuer {
        /// The index in `identity.admins`.
        index: usize,
        /// The administrator.
        principal: String,
        /// The issuer it refers to.
        issuer: String,
    },
}

impl PrincipalNames {
    /// The names of the sources in the settings.
    ///
    /// # Errors
    /// Two sources would give the same names.
    pub fn new(identity: &IdentitySettings) -> Result<Self, AmbiguousPrincipals> {
        let mut names = Self::default();
        let keys = identity.api_keys.iter().map(|key| key.principal.clone());
        names.explicit.extend(keys);
        names.explicit.extend(identity.anonymous.clone());
        for certificate in &identity.certificates {
            match certificate.principal.split_once('*') {
                Some((prefix, _)) => names
                    .families
                    .push((prefix.to_owned(), NameSource::Certificates)),
                None => {
                    names.explicit.insert(certificate.principal.clone());
                }
            }
        }
        for (index, jwt) in identity.jwt.iter().enumerate() {
            let mut before = identity.jwt.iter().take(index);
            let same = before.position(|it| it.issuer.is_some() && it.issuer == jwt.issuer);
            let source = NameSource::Issuer(same.unwrap_or(index));
            let prefix = &jwt.principal_prefix;
            let mut families = names.families.iter();
            let taken = families.find(|(known, of)| known == prefix && *of != source);
            if let Some((_, taken)) = taken {
                return Err(AmbiguousPrincipals::SameNames {
                    index,
                    one: describe_source(*taken, &identity.jwt),
                    other: describe_source(source, &identity.jwt),
                });
            }
            names.families.push((prefix.clone(), source));
            names.issuers.push(source);
        }
        Ok(names)
    }

    /// The source that a name belongs to; `None` if no credential can give it.
    #[must_use]
    pub fn owner(&self, name: &str) -> Option<NameSource> {
        if self.explicit.contains(name) {
            return Some(NameSource::Settings);
        }
        let fitting = self
            .families
            .iter()
            .filter(|(it, _)| name.starts_with(it.as_str()));
        let longest = fitting.max_by_key(|(prefix, _)| prefix.len());
        longest.map(|(_, source)| *source)
    }

    /// The source of an entry of `identity.jwt`.
    #[must_use]
    pub fn of_issuer(&self, index: usize) -> NameSource {
        let known = self.issuers.get(index).copied();
        known.unwrap_or(NameSource::Issuer(index))
    }

    /// The administrators, each with the source that names it.
    ///
    /// # Errors
    /// The source of an administrator is ambiguous.
    pub fn admins(
        &self,
        identity: &IdentitySettings,
    ) -> Result<BTreeSet<(NameSource, String)>, AmbiguousPrincipals> {
        let mut admins = BTreeSet::new();
        for (index, AdminSettings { principal, issuer }) in identity.admins.iter().enumerate() {
            let owner = self.owner(principal);
            let source = match issuer {
                Some(issuer) => {
                    let mut entries = identity.jwt.iter();
                    let named = entries.position(|it| it.issuer.as_ref() == Some(issuer));
                    let named = named
                        .map(|at| self.of_issuer(at))
                        .filter(|it| Some(*it) == owner);
                    Some(named.ok_or_else(|| AmbiguousPrincipals::NoSuchIssuer {
                        index,
                        principal: principal.clone(),
                        issuer: issuer.clone(),
                    })?)
                }
                None if self.is_ambiguous(owner, principal) => {
                    let principal = principal.clone();
                    return Err(AmbiguousPrincipals::Admin { index, principal });
                }
                None => owner,
            };
            admins.extend(source.map(|source| (source, principal.clone())));
        }
        Ok(admins)
    }

    /// Whether a name belongs to an issuer only because that issuer has no prefix, and there are other
    /// sources of names. Removing the key of such an administrator would leave its role to any caller that
    /// the issuer gives this name.
    fn is_ambiguous(&self, owner: Option<NameSource>, name: &str) -> bool {
        let mut issuers = self.issuers.clone();
        issuers.sort_unstable();
        issuers.dedup();
        let mut prefixes = self.families.iter();
        let by_prefix = prefixes
            .any(|(it, of)| !it.is_empty() && Some(*of) == owner && name.starts_with(it.as_str()));
        let is_other = |(_, of): &(String, NameSource)| *of == NameSource::Certificates;
        let has_others =
            issuers.len() > 1 || !self.explicit.is_empty() || self.families.iter().any(is_other);
        matches!(owner, Some(NameSource::Issuer(_))) && has_others && !by_prefix
    }
}

fn describe_source(source: NameSource, jwt: &[JwtSettings]) -> String {
    match source {
        NameSource::Settings => "names in the settings".to_owned(),
        NameSource::Certificates => "client certificates".to_owned(),
        NameSource::Issuer(index) => {
            let issuer = jwt.get(index).and_then(|jwt| jwt.issuer.as_deref());
            issuer.map_or_else(
                || format!("tokens of entry {} of `identity.jwt`", index + 1),
                |issuer| format!("tokens of `{issuer}`"),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Settings;

    fn error_text(identity: &str) -> String {
        let text = format!("servers: {{a: x}}\nidentity: {identity}\n");
        match Settings::of_text(&text, Path::new("t.yaml"), &|_| None) {
            Ok(_) => "fine".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn ambiguity_is_an_error_at_load() {
        let one = "issuer: 'https://one.example', audience: a";
        let two = "issuer: 'https://two.example', audience: a";
        let same = "t.yaml:2:";
        for (identity, expected) in [
            (format!("{{jwt: [{{{one}}}]}}"), "fine"),
            (
                format!("{{jwt: [{{{one}}}, {{{one}, scopes: x}}], admins: alice}}"),
                "fine",
            ),
            (
                format!("{{jwt: [{{{one}}}, {{{two}}}]}}"),
                "tokens of `https://one.example` and tokens of `https://two.example` would name the same \
                 principals; give each issuer a `principal_prefix` of its own",
            ),
            (
                format!("{{jwt: [{{{one}}}, {{{two}, principal_prefix: 'two:'}}]}}"),
                "fine",
            ),
            (
                format!(
                    "{{jwt: [{{{one}}}, {{{two}, principal_prefix: 'two:'}}], admins: [alice]}}"
                ),
                "the administrator `alice` does not say which issuer names it; write {principal: alice, \
                 issuer: …}",
            ),
            (
                format!(
                    "{{jwt: [{{{one}}}, {{{two}, principal_prefix: 'two:'}}], admins: ['two:alice']}}"
                ),
                "fine",
            ),
            (
                format!(
                    "{{jwt: [{{{one}}}, {{{two}, principal_prefix: 'two:'}}], \
                     admins: [{{principal: alice, issuer: 'https://one.example'}}]}}"
                ),
                "fine",
            ),
            (
                format!(
                    "{{jwt: [{{{one}}}], admins: [{{principal: alice, issuer: 'https://two.example'}}]}}"
                ),
                "no entry of `identity.jwt` with the issuer `https://two.example` names principals like `alice`",
            ),
            (
                format!(
                    "{{jwt: [{{{one}, principal_prefix: 'corp:'}}], admins: [{{principal: alice, issuer: 'https://one.example'}}]}}"
                ),
                "no entry of `identity.jwt` with the issuer `https://one.example` names principals like `alice`",
            ),
            (
                format!(
                    "{{jwt: [{{{one}}}], anonymous: alice, admins: [{{principal: alice, issuer: 'https://one.example'}}]}}"
                ),
                "no entry of `identity.jwt` with the issuer `https://one.example` names principals like `alice`",
            ),
            (
                format!("{{jwt: [{{{one}}}], anonymous: alice, admins: alice}}"),
                "fine",
            ),
            // Without the administrator's key, the issuer could name an administrator.
            (
                format!("{{jwt: [{{{one}}}], anonymous: guest, admins: alice}}"),
                "the administrator `alice` does not say which issuer names it",
            ),
        ] {
            let found = error_text(&identity);
            match expected {
                "fine" => assert_eq!(found, expected, "{identity}"),
                message => {
                    assert!(found.starts_with(same), "{identity}: {found}");
                    assert!(found.contains(message), "{identity}: {found}");
                }
            }
        }
    }

    #[test]
    fn a_name_belongs_to_one_source() {
        let text = "
servers: {a: x}
listen: {address: '127.0.0.1:1', tls: {certificate: c, key: k, client_ca: a}}
identity:
  api_keys: [{principal: robot, key: aaaaaaaaaaaaaaaaaaaaaaaaaa}]
  anonymous: guest
  certificates: [{subject: host, principal: builder}, {subject: '*', principal: 'cert:*'}]
  jwt:
    - {issuer: 'https://one.example', audience: a}
    - {issuer: 'https://two.example', audience: a, principal_prefix: 'two:'}
";
        let loaded = Settings::of_text(text, Path::new("t.yaml"), &|_| None).unwrap();
        let names = PrincipalNames::new(&loaded.settings.identity).unwrap();
        for (name, owner) in [
            ("robot", NameSource::Settings),
            ("guest", NameSource::Settings),
            ("builder", NameSource::Settings),
            ("cert:host", NameSource::Certificates),
            ("two:alice", NameSource::Issuer(1)),
            ("alice", NameSource::Issuer(0)),
            ("cert", NameSource::Issuer(0)),
        ] {
            assert_eq!(names.owner(name), Some(owner), "{name}");
        }
    }
}
