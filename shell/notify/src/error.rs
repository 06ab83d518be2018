use std::time::Duration;

use thiserror::Error;
use toolwarden_store::StoreError;

/// Why a notice was not delivered. Errors name only the host of an address, because the rest is often a
/// secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeliveryError {
    /// The address is invalid.
    #[error("the address is not an http or https URL")]
    Address,
    /// The mail server is invalid.
    #[error("`{server}` is not a mail server: a host and a port are needed")]
    MailServer {
        /// The configured text.
        server: String,
    },
    /// The e-mail address is invalid.
    #[error("`{address}` is not an e-mail address")]
    Mailbox {
        /// The configured text.
        address: String,
    },
    /// No recipients are configured.
    #[error("no recipients are given")]
    NoRecipients,
    /// Unencrypted mail is only sent to this machine.
    #[error("{host} is not this machine, and mail to it would not be encrypted")]
    Unencrypted {
        /// The mail server.
        host: String,
    },
    /// The notice cannot be written as mail.
    #[error("the notice cannot be written as mail")]
    InvalidMail,
    /// TLS is required, and the system's trusted certificates cannot be used.
    #[error("the certificates of this system cannot be used")]
    NoTrustedCertificates,
    /// The name cannot be resolved.
    #[error("the name {host} cannot be resolved")]
    Dns {
        /// The host.
        host: String,
    },
    /// No process listens at the address.
    #[error("{host} refused the connection")]
    Refused {
        /// The host.
        host: String,
    },
    /// The TLS handshake failed.
    #[error("no secure connection to {host}: {detail}")]
    Tls {
        /// The host.
        host: String,
        /// The message of the TLS library.
        detail: String,
    },
    /// The response did not arrive in time.
    #[error("no answer from {host} in time")]
    Timeout {
        /// The host.
        host: String,
    },
    /// The connection failed or broke.
    #[error("no answer from {host}: {detail}")]
    Connection {
        /// The host.
        host: String,
        /// The cause.
        detail: String,
    },
    /// The response has an error status.
    #[error("{host} answered with HTTP status {status}{}", after_colon(.excerpt))]
    Status {
        /// The host.
        host: String,
        /// The status.
        status: u16,
        /// The beginning of the body.
        excerpt: String,
        /// The delay that the response asks for.
        after: Option<Duration>,
        /// Whether the body reports a rate limit.
        throttled: bool,
    },
    /// The response has an error code.
    #[error("{host} answered with error code {code}{}", after_colon(.message))]
    Code {
        /// The host.
        host: String,
        /// The code.
        code: i64,
        /// The error text.
        message: String,
        /// Whether the code reports a rate limit or a busy service.
        throttled: bool,
    },
    /// The response is not one that such a service gives.
    #[error("unexpected response from {host}{}", after_colon(.excerpt))]
    Unexpected {
        /// The host.
        host: String,
        /// The beginning of the body.
        excerpt: String,
    },
    /// The mail server rejected the mail.
    #[error("{host} refused the mail with code {code}{}", after_colon(.message))]
    Mail {
        /// The mail server.
        host: String,
        /// Its code.
        code: u16,
        /// The error text.
        message: String,
    },
    /// The queue of the target was full.
    #[error("{capacity} notices were already pending")]
    QueueFull {
        /// The maximum number of pending notices.
        capacity: usize,
    },
    /// The target was removed from the settings before the delivery.
    #[error("the target is no longer configured")]
    TargetRemoved,
}

impl DeliveryError {
    /// Whether a retry may help.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Dns { .. }
            | Self::Refused { .. }
            | Self::Timeout { .. }
            | Self::Connection { .. } => true,
            Self::Status {
                status, throttled, ..
            } => *throttled || *status == 429 || (*status >= 500 && *status < 600),
            Self::Code { throttled, .. } => *throttled,
            Self::Mail { code, .. } => *code >= 400 && *code < 500,
            Self::Address
            | Self::MailServer { .. }
            | Self::Mailbox { .. }
            | Self::NoRecipients
            | Self::Unencrypted { .. }
            | Self::InvalidMail
            | Self::NoTrustedCertificates
            | Self::Tls { .. }
            | Self::Unexpected { .. }
            | Self::QueueFull { .. }
            | Self::TargetRemoved => false,
        }
    }

    /// The delay that the target asks for, if any.
    pub(super) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { after, .. } => *after,
            _ => None,
        }
    }
}

/// Why the notifier cannot accept notices or report on them.
#[derive(Debug, Error)]
pub enum NotifyError {
    /// The store cannot be used.
    #[error("cannot store deliveries")]
    Store(#[from] StoreError),
    /// Deliveries need a Tokio runtime.
    #[error("cannot deliver notices without a tokio runtime")]
    NoRuntime,
    /// The thread could not be started.
    #[error("cannot start the delivery thread")]
    Thread(#[source] std::io::Error),
    /// The notifier was closed.
    #[error("the notifier is closed")]
    Closed,
    /// No target has that name.
    #[error("there is no target `{name}`")]
    UnknownTarget {
        /// The name.
        name: String,
    },
}

fn after_colon(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}
