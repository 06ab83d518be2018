use std::collections::BTreeMap;
use std::time::Duration;

use toolwarden_model::Fingerprint;
use toolwarden_model::document::{DiagnosticKind, LocatedValue, Section};

use super::super::keys::{ADMIN, API_KEY, CERTIFICATE, IDENTITY, JWT, ROLE_CLAIM};
use super::super::mask::MASK;
use super::super::{
    AdminSettings, AmbiguousPrincipals, ApiKeySettings, CertificateSettings, IdentitySettings,
    JwtKeys, JwtSettings, KEY_MAX_STALE, KEY_REFRESH, PrincipalNames, RoleClaim, SettingsProblem,
    TlsSettings, is_loopback_or_https,
};
use super::SettingsReader;

/// A shorter key could be guessed and confirmed with its digest.
const LEAST_KEY: usize = 20;

/// The minimum length of a secret for HS256 in RFC 7518.
const MIN_SECRET_LEN: usize = 32;

impl SettingsReader<'_> {
    pub(super) fn identity(
        &mut self,
        at: &LocatedValue<'_>,
        tls: Option<&TlsSettings>,
    ) -> IdentitySettings {
        let section = self.section(at, &IDENTITY);
        let mut identity = IdentitySettings::default();
        if let Some(at) = section.said("api_keys") {
            identity.api_keys = self.api_keys(at);
        }
        if let Some(at) = section.said("jwt") {
            let items = self.reader.list(at);
            identity.jwt = items.iter().filter_map(|at| self.jwt(at)).collect();
        }
        if let Some(at) = section.said("certificates") {
            let items = self.reader.list(at);
            let read = items.iter().filter_map(|at| self.certificate(at));
            identity.certificates = read.collect();
            if tls.is_none_or(|tls| tls.client_ca.is_none()) {
                let (key, other) = ("certificates", "listen.tls.client_ca");
                self.reader
                    .report(&at.pointer, SettingsProblem::Needs { key, other });
            }
        }
        if let Some(at) = section.said("anonymous") {
            identity.anonymous = self.line(at, "a principal");
        }
        if let Some(at) = section.said("admins") {
            identity.admins = self.admins(at);
        }
        self.check_ambiguous_names(&section, &identity);
        self.warn_unnamed_admins(&section, &identity);
        identity
    }

    fn admins(&mut self, at: &LocatedValue<'_>) -> Vec<AdminSettings> {
        let items = match at.value.is_string() {
            true => vec![at.clone()],
            false => self.reader.list(at),
        };
        let mut admins = Vec::new();
        for at in &items {
            if at.value.is_string() {
                let named = self.line(at, "a principal");
                admins.extend(named.map(|principal| AdminSettings::named(&principal)));
                continue;
            }
            let section = self.section(at, &ADMIN);
            let mut line = |key: &str, what: &'static str| {
                section.said(key).and_then(|at| self.line(at, what))
            };
            let (principal, issuer) = (
                line("principal", "a principal"),
                line("issuer", "an issuer"),
            );
            admins.extend(principal.map(|principal| AdminSettings { principal, issuer }));
        }
        admins
    }

    /// Rejects settings in which two sources could name one principal.
    fn check_ambiguous_names(&mut self, section: &Section<'_>, identity: &IdentitySettings) {
        let names = PrincipalNames::new(identity);
        let Err(ambiguous) = names.and_then(|names| names.admins(identity)) else {
            return;
        };
        let (key, index) = match &ambiguous {
            AmbiguousPrincipals::SameNames { index, .. } => ("jwt", index),
            AmbiguousPrincipals::Admin { index, .. }
            | AmbiguousPrincipals::NoSuchIssuer { index, .. } => ("admins", index),
        };
        let place = section.said(key).map(|at| match at.value.is_array() {
            true => at.pointer.index(*index),
            false => at.pointer.clone(),
        });
        let place = place.unwrap_or_else(|| section.pointer.clone());
        let message = ambiguous.to_string();
        self.reader
            .report(&place, SettingsProblem::Principals { message });
    }

    /// Warns of administrators that no caller can be: their name is misspelled, or their key is missing.
    fn warn_unnamed_admins(&mut self, section: &Section<'_>, identity: &IdentitySettings) {
        let (Some(at), Ok(names)) = (section.said("admins"), PrincipalNames::new(identity)) else {
            return;
        };
        let place = |index: usize| match at.value.is_array() {
            true => at.pointer.index(index),
            false => at.pointer.clone(),
        };
        for (index, AdminSettings { principal, .. }) in identity.admins.iter().enumerate() {
            if names.owner(principal).is_none() {
                let place = place(index);
                let mut masked = self.masked_texts.keys();
                let is_masked = masked.any(|it| it.as_str().starts_with(place.as_str()));
                let principal = if is_masked { MASK } else { principal };
                let message = format!(
                    "no credential of these settings names the administrator `{principal}`; give it a key \
                     (`toolwarden key new --principal {principal}`) under `identity.api_keys`"
                );
                self.warn(&place, &message);
            }
        }
    }

    fn role_claim(&mut self, at: &LocatedValue<'_>) -> Option<RoleClaim> {
        let section = self.section(at, &ROLE_CLAIM);
        let claim = section
            .said("claim")
            .and_then(|at| self.line(at, "a claim"));
        let mut map = BTreeMap::new();
        if let Some(at) = section.said("map") {
            for (value, at) in self.reader.named(at, "a value of the claim") {
                map.insert(value.to_owned(), self.lines(&at, "a role"));
            }
        }
        let claim = claim?;
        Some(RoleClaim { claim, map })
    }

    fn api_keys(&mut self, at: &LocatedValue<'_>) -> Vec<ApiKeySettings> {
        let mut keys = Vec::new();
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        for at in self.reader.list(at) {
            let Some(key) = self.api_key(&at) else {
                continue;
            };
            let before = owners.insert(key.sha256.clone(), key.principal.clone());
            if before.is_some_and(|principal| principal != key.principal) {
                let message = "two principals have the same key";
                self.reader
                    .report(&at.pointer, SettingsProblem::Value { message });
            }
            keys.push(key);
        }
        keys
    }

    fn api_key(&mut self, at: &LocatedValue<'_>) -> Option<ApiKeySettings> {
        let section = self.section(at, &API_KEY);
        let principal = section
            .said("principal")
            .and_then(|at| self.line(at, "a principal"));
        if !at.value.is_object() {
            return None;
        }
        let (key, at) = self.exactly_one(&section, &API_KEY)?;
        let text = self.line(at, "a key")?;
        let sha256 = if key == "sha256" {
            let digest = text.strip_prefix("sha256:").unwrap_or(&text);
            if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                let message = "a SHA-256 digest has 64 hexadecimal digits";
                self.reader
                    .report(&at.pointer, SettingsProblem::Value { message });
                return None;
            }
            digest.to_ascii_lowercase()
        } else {
            if text.len() < LEAST_KEY {
                let message = format!("a key of less than {LEAST_KEY} characters can be guessed");
                self.warn(&at.pointer, &message);
            }
            // The digest of the bytes of the text, as `sha256sum` prints it.
            Fingerprint::of_canonical(&text).to_string()
        };
        Some(ApiKeySettings {
            principal: principal?,
            sha256,
        })
    }

    fn jwt(&mut self, at: &LocatedValue<'_>) -> Option<JwtSettings> {
        let section = self.section(at, &JWT);
        if !at.value.is_object() {
            return None;
        }
        let issuer = section
            .said("issuer")
            .and_then(|at| self.line(at, "an issuer"));
        let audience = section
            .said("audience")
            .and_then(|at| self.line(at, "an audience"));
        let mut line = |key: &str, default: &str| {
            let text = section.said(key).and_then(|at| self.reader.text(at));
            text.unwrap_or(default).to_owned()
        };
        let principal_claim = line("principal_claim", "sub");
        let principal_prefix = line("principal_prefix", "");
        let scopes = section.said("scopes").map(|at| self.lines(at, "a scope"));
        let leeway = section.said("leeway");
        let leeway = leeway.and_then(|at| self.reader.duration(at));
        let roles = section.said("roles").and_then(|at| self.role_claim(at));
        let mut time = |key: &str, default: Duration| {
            let said = section.said(key).and_then(|at| self.reader.duration(at));
            said.unwrap_or(default)
        };
        let (refresh, max_stale) = (
            time("refresh", KEY_REFRESH),
            time("max_stale", KEY_MAX_STALE),
        );
        let keys = self.jwt_keys(&section);
        if matches!(keys, Some(JwtKeys::Discovery)) {
            match section.said("issuer") {
                Some(at) => self.trusted_address(at).map(drop),
                None => {
                    let keys = "`issuer`, `secret`, `public_key`, `jwks`".to_owned();
                    self.reader
                        .report(&at.pointer, SettingsProblem::NoneOf { keys });
                    None
                }
            };
        }
        Some(JwtSettings {
            issuer,
            audience: audience?,
            keys: keys?,
            principal_claim,
            principal_prefix,
            scopes: scopes.unwrap_or_default(),
            leeway: leeway.unwrap_or(Duration::from_secs(60)),
            roles,
            refresh,
            max_stale,
        })
    }

    fn jwt_keys(&mut self, section: &Section<'_>) -> Option<JwtKeys> {
        let kinds = ["secret", "public_key", "jwks"];
        let mut given = kinds
            .into_iter()
            .filter_map(|key| Some((key, section.said(key)?)));
        let Some((one, at)) = given.next() else {
            return Some(JwtKeys::Discovery);
        };
        if let Some((other, second)) = given.next() {
            self.reader.report(
                &second.pointer,
                DiagnosticKind::ConflictingKeys { one, other },
            );
            return None;
        }
        if one == "jwks" {
            return self.trusted_address(at).map(JwtKeys::Jwks);
        }
        let text = self.line(at, "a key")?;
        let message = match one {
            "secret" if text.len() < MIN_SECRET_LEN => {
                "a secret for tokens has at least 32 bytes (RFC 7518)"
            }
            "public_key" if !text.starts_with("-----BEGIN ") => {
                "a public key is PEM text; `${file:path}` reads it from a file"
            }
            "secret" => return Some(JwtKeys::Secret(text)),
            _ => return Some(JwtKeys::PublicKey(text)),
        };
        self.reader
            .report(&at.pointer, SettingsProblem::Value { message });
        None
    }

    /// An address whose response decides who callers are: keys fetched without TLS could be replaced.
    fn trusted_address(&mut self, at: &LocatedValue<'_>) -> Option<String> {
        let address = self.address(at)?;
        if !is_loopback_or_https(&address) {
            let message = "keys are fetched over https only, or over http from loopback: an attacker on the network \
                           could replace them";
            self.reader
                .report(&at.pointer, SettingsProblem::Value { message });
            return None;
        }
        Some(address)
    }

    fn certificate(&mut self, at: &LocatedValue<'_>) -> Option<CertificateSettings> {
        let section = self.section(at, &CERTIFICATE);
        let mut line =
            |key: &str, what: &'static str| section.said(key).and_then(|at| self.line(at, what));
        let (subject, principal) = (
            line("subject", "a subject"),
            line("principal", "a principal"),
        );
        Some(CertificateSettings {
            subject: subject?,
            principal: principal?,
        })
    }
}
