//! Sends one mail, and evaluates the result.

use std::error::Error;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::{AsyncSmtpTransport, Error as SmtpError};
use lettre::{AsyncTransport as _, Tokio1Executor};
use toolwarden_http::is_tls_error;

use super::error::DeliveryError;
use super::http_post::connection_error;
use super::message::{mail_body, mail_id, mail_subject};
use super::notice::Notice;
use super::redact::TargetSecrets;
use toolwarden_settings::SmtpSecurity;

/// A mail server that is ready to be used.
#[derive(Debug)]
pub(super) struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    host: String,
    port: u16,
    from: Mailbox,
    to: Vec<Mailbox>,
}

/// The settings of a mailer.
pub(super) struct SmtpAccount<'a> {
    pub(super) server: &'a str,
    pub(super) security: SmtpSecurity,
    pub(super) credentials: Option<&'a (String, String)>,
    pub(super) from: &'a str,
    pub(super) to: &'a [String],
}

impl Mailer {
    pub(super) fn new(account: &SmtpAccount<'_>, timeout: Duration) -> Result<Self, DeliveryError> {
        let (host, port) = host_and_port(account.server)?;
        if account.security == SmtpSecurity::None && !is_loopback(&host) {
            return Err(DeliveryError::Unencrypted { host });
        }
        let from = mailbox(account.from)?;
        let to: Result<Vec<Mailbox>, DeliveryError> =
            account.to.iter().map(|address| mailbox(address)).collect();
        let to = to?;
        if to.is_empty() {
            return Err(DeliveryError::NoRecipients);
        }
        let tls =
            || TlsParameters::new(host.clone()).map_err(|_| DeliveryError::NoTrustedCertificates);
        let tls = match account.security {
            SmtpSecurity::None => Tls::None,
            SmtpSecurity::StartTls => Tls::Required(tls()?),
            SmtpSecurity::Tls => Tls::Wrapper(tls()?),
        };
        // The builder is called dangerous because the caller must enable TLS, which happens below.
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&host)
            .port(port)
            .tls(tls)
            .timeout(Some(timeout))
            .authentication(vec![Mechanism::Plain, Mechanism::Login]);
        if let Some((user, password)) = account.credentials {
            builder = builder.credentials(Credentials::new(user.clone(), password.clone()));
        }
        Ok(Self {
            transport: builder.build(),
            host,
            port,
            from,
            to,
        })
    }

    /// Sends a notice.
    pub(super) async fn send(
        &self,
        notice: &Notice,
        mask: &TargetSecrets,
        now: Timestamp,
    ) -> Result<(), DeliveryError> {
        let mail = self.compose(notice, now)?;
        match self.transport.send(mail).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.delivery_error(error, mask).await),
        }
    }

    fn compose(&self, notice: &Notice, now: Timestamp) -> Result<Message, DeliveryError> {
        // The header keeps auto-responders from answering.
        let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
        let mut builder = Message::builder()
            .from(self.from.clone())
            .subject(mail_subject(notice))
            .message_id(Some(mail_id(notice)))
            .date(SystemTime::from(now))
            .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
            .header(ContentType::TEXT_PLAIN);
        for recipient in &self.to {
            builder = builder.to(recipient.clone());
        }
        let written = builder.body(mail_body(notice));
        written.map_err(|_| DeliveryError::InvalidMail)
    }

    async fn delivery_error(&self, error: SmtpError, mask: &TargetSecrets) -> DeliveryError {
        let host = format!("{}:{}", self.host, self.port);
        let detail = mask.redacted_excerpt(&root_cause(&error));
        if let Some(code) = error.status() {
            let code = u16::from(code);
            return DeliveryError::Mail {
                host,
                code,
                message: detail,
            };
        }
        if error.is_tls() || is_tls_error(&error) {
            return DeliveryError::Tls { host, detail };
        }
        if error.is_timeout() {
            return DeliveryError::Timeout { host };
        }
        connection_error(&error, host, (&self.host, self.port), detail).await
    }
}

/// The host and the port of a server; the port is required, even if it is 25, 465 or 587.
pub(super) fn host_and_port(server: &str) -> Result<(String, u16), DeliveryError> {
    let parts = server.rsplit_once(':').and_then(|(host, port)| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        (!host.is_empty()).then_some((host.to_owned(), port.parse().ok()?))
    });
    parts.ok_or_else(|| DeliveryError::MailServer {
        server: server.to_owned(),
    })
}

fn mailbox(address: &str) -> Result<Mailbox, DeliveryError> {
    address.parse().map_err(|_| DeliveryError::Mailbox {
        address: address.to_owned(),
    })
}

/// The last cause of an error; those before it only repeat it.
fn root_cause(error: &SmtpError) -> String {
    let mut last: &dyn Error = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

fn is_loopback(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
