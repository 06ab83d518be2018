//! Principals by client certificate.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use toolwarden_settings::{CertificateSettings, NameSource};
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::credential::is_plain_name;

/// The names in a client certificate. The TLS handshake has verified its chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSubject {
    /// The common name.
    pub common_name: Option<String>,
    /// The alternative names, each with its kind: `uri:…`, `dns:…` or `email:…`.
    pub alternatives: Vec<String>,
    /// The SHA-256 digest of the certificate in base64url, as in `x5t#S256` of a token (RFC 8705).
    pub thumbprint: String,
}

impl TlsSubject {
    /// Reads the names in a certificate. A certificate that cannot be parsed has no names.
    #[must_use]
    pub fn of_certificate(der: &[u8]) -> Self {
        let Ok(certificate) = x509_cert::Certificate::from_der(der) else {
            return Self::default();
        };
        let certificate = certificate.tbs_certificate();
        let common_name = certificate.subject().common_name().ok().flatten();
        let names = certificate.get_extension::<SubjectAltName>().ok().flatten();
        let names = names.map(|(_, SubjectAltName(names))| names);
        Self {
            thumbprint: URL_SAFE_NO_PAD.encode(Sha256::digest(der)),
            common_name: common_name.map(|name| name.value().into_owned()),
            alternatives: names
                .unwrap_or_default()
                .iter()
                .filter_map(alternative_name)
                .collect(),
        }
    }
}

/// The certificate rules in the order of the settings.
#[derive(Debug)]
pub(super) struct ClientCertificates(Vec<CertificateSettings>);

impl ClientCertificates {
    pub(super) fn new(settings: &[CertificateSettings]) -> Self {
        Self(settings.to_vec())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The principal of a certificate, by the first rule that matches, and whether the settings or the certificate
    /// determined the name.
    pub(super) fn find(&self, subject: &TlsSubject) -> Option<(Arc<str>, NameSource)> {
        self.0.iter().find_map(|rule| {
            let name = matching_name(&rule.subject, subject)?;
            let source = match rule.principal.contains('*') {
                true => NameSource::Certificates,
                false => NameSource::Settings,
            };
            Some((Arc::from(rule.principal.replace('*', name)), source))
        })
    }
}

/// The name that a rule of the settings refers to, if the certificate has it. Kinds are not mixed: a common name
/// that looks like an email address does not match one.
fn matching_name<'a>(wanted: &str, subject: &'a TlsSubject) -> Option<&'a str> {
    for kind in ["uri:", "dns:", "email:"] {
        let Some(wanted) = wanted.strip_prefix(kind) else {
            continue;
        };
        let mut names = subject.alternatives.iter();
        return names.find_map(|name| {
            let name = name.strip_prefix(kind)?;
            (is_plain_name(name) && (wanted == "*" || wanted == name)).then_some(name)
        });
    }
    let name = subject.common_name.as_deref()?;
    (is_plain_name(name) && (wanted == "*" || wanted == name)).then_some(name)
}

fn alternative_name(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::UniformResourceIdentifier(uri) => Some(format!("uri:{}", uri.as_str())),
        GeneralName::DnsName(name) => Some(format!("dns:{}", name.as_str())),
        GeneralName::Rfc822Name(mail) => Some(format!("email:{}", mail.as_str())),
        GeneralName::OtherName(_)
        | GeneralName::DirectoryName(_)
        | GeneralName::EdiPartyName(_)
        | GeneralName::IpAddress(_)
        | GeneralName::RegisteredId(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fitting_line_names_the_principal() {
        let rules = ClientCertificates::new(
            &[
                ("alice", "boss"),
                ("uri:spiffe://corp/agent", "agent"),
                ("dns:*", "host-*"),
                ("*", "cert:*"),
            ]
            .map(|(subject, principal)| CertificateSettings {
                subject: subject.to_owned(),
                principal: principal.to_owned(),
            }),
        );
        for (common_name, alternatives, expected) in [
            (Some("alice"), vec![], Some("boss")),
            (Some("bob"), vec![], Some("cert:bob")),
            (Some("bob"), vec!["dns:b.example"], Some("host-b.example")),
            (None, vec!["uri:spiffe://corp/agent"], Some("agent")),
            (None, vec!["uri:spiffe://corp/other"], None),
            (
                Some("uri:spiffe://corp/agent"),
                vec![],
                Some("cert:uri:spiffe://corp/agent"),
            ),
            (None, vec!["email:alice"], None),
            (Some(""), vec![], None),
            (Some("alice "), vec![], None),
            (Some("al\u{200b}ice"), vec![], None),
            (None, vec![], None),
        ] {
            let subject = TlsSubject {
                common_name: common_name.map(str::to_owned),
                alternatives: alternatives.into_iter().map(str::to_owned).collect(),
                thumbprint: String::new(),
            };
            let found = rules.find(&subject).map(|(name, _)| name);
            assert_eq!(found.as_deref(), expected, "{subject:?}");
        }
    }

    #[test]
    fn what_is_no_certificate_names_nobody() {
        assert_eq!(TlsSubject::of_certificate(b"no"), TlsSubject::default());
    }
}
