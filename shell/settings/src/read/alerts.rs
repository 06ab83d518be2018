use toolwarden_model::Severity;
use toolwarden_model::document::{DiagnosticKind, LocatedValue, Section};

use super::super::keys::{ALERT, SEVERITY, SMTP, SMTP_SECURITY};
use super::super::{AlertChannel, AlertTarget, SettingsProblem, SmtpSecurity};
use super::SettingsReader;

impl SettingsReader<'_> {
    pub(super) fn alerts(&mut self, at: &LocatedValue<'_>) -> Vec<AlertTarget> {
        let named = self.reader.named(at, "a name").into_iter();
        named
            .filter_map(|(name, at)| self.alert(name, &at))
            .collect()
    }

    fn alert(&mut self, name: &str, at: &LocatedValue<'_>) -> Option<AlertTarget> {
        let section = self.section(at, &ALERT);
        if !at.value.is_object() {
            return None;
        }
        let least = section.said("severity");
        let least = least.and_then(|at| self.reader.word(at, SEVERITY));
        let channel = self.channel(&section);
        Some(AlertTarget {
            name: name.to_owned(),
            channel: channel?,
            min_severity: least.unwrap_or(Severity::Info),
        })
    }

    fn channel(&mut self, section: &Section<'_>) -> Option<AlertChannel> {
        let secret = section.said("secret");
        let signed = secret.and_then(|at| self.line(at, "a secret"));
        let (one, at) = self.exactly_one(section, &ALERT)?;
        if let Some(secret) = secret
            && !["webhook", "feishu", "dingtalk"].contains(&one)
        {
            let other = "secret";
            self.reader.report(
                &secret.pointer,
                DiagnosticKind::ConflictingKeys { one, other },
            );
        }
        if one == "smtp" {
            return self.smtp(at);
        }
        let url = self.address(at)?;
        Some(match one {
            "slack" => AlertChannel::Slack { url },
            "feishu" => AlertChannel::Feishu {
                url,
                secret: signed,
            },
            "dingtalk" => AlertChannel::DingTalk {
                url,
                secret: signed,
            },
            "wecom" => AlertChannel::WeCom { url },
            _ => AlertChannel::Webhook {
                url,
                secret: signed,
            },
        })
    }

    fn smtp(&mut self, at: &LocatedValue<'_>) -> Option<AlertChannel> {
        let section = self.section(at, &SMTP);
        let security = section.said("security");
        let security = security.and_then(|at| self.reader.word(at, SMTP_SECURITY));
        let security = security.unwrap_or(SmtpSecurity::StartTls);
        let server = section.said("server").and_then(|at| {
            let server = self.line(at, "a server")?;
            if security == SmtpSecurity::None && !is_loopback(&server) {
                let message = "mail to another machine needs `security: starttls` or `tls`";
                self.reader
                    .report(&at.pointer, SettingsProblem::Value { message });
            }
            Some(with_port(server, security))
        });
        let mut line =
            |key: &str, what: &'static str| section.said(key).and_then(|at| self.line(at, what));
        let (user, password) = (line("user", "a user"), line("password", "a password"));
        let from = line("from", "a sender");
        let to = section.said("to").map(|at| self.lines(at, "a recipient"));
        let credentials = match (section.said("user"), section.said("password")) {
            (Some(_), Some(_)) => user.zip(password),
            (None, None) => None,
            (user, _) => {
                let (key, other) = match user {
                    Some(_) => ("user", "password"),
                    None => ("password", "user"),
                };
                self.reader
                    .report(&at.pointer, SettingsProblem::Needs { key, other });
                None
            }
        };
        Some(AlertChannel::Smtp {
            server: server?,
            security,
            credentials,
            from: from?,
            to: to?,
        })
    }
}

/// The host of `host:port` or `[::1]:port`, and whether it has a port.
fn host(server: &str) -> (&str, bool) {
    if let Some(rest) = server.strip_prefix('[')
        && let Some((host, port)) = rest.split_once(']')
    {
        return (host, !port.is_empty());
    }
    match server.split_once(':') {
        Some((host, _)) => (host, true),
        None => (server, false),
    }
}

fn is_loopback(server: &str) -> bool {
    let (host, _) = host(server);
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn with_port(server: String, security: SmtpSecurity) -> String {
    if host(&server).1 {
        return server;
    }
    let port = match security {
        SmtpSecurity::None => 25,
        SmtpSecurity::StartTls => 587,
        SmtpSecurity::Tls => 465,
    };
    format!("{server}:{port}")
}
