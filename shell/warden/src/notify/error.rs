use std::time::Duration;

use thiserror::Error;
use toolwarden_store::StoreError;

/// Why a notice was not delivered. Addresses are told by their host, for the rest is often a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeliveryError {
    /// Nothing can be sent there.
    #[error("the address is not an http or https URL")]
    Address,
    /// Nothing can be mailed there.
    #[error("`{server}` is not a mail server: a host and a port are needed")]
    MailServer {
        /// As it was given.
        server: String,
    },
    /// Nobody can be mailed there.
    #[error("`{address}` is not an e-mail address")]
    Mailbox {
        /// As it was given.
        address: String,
    },
    /// There is nobody to mail to.
    #[error("no recipients are given")]
    NoRecipients,
    /// Mail is sent in the clear on this machine only.
    #[error("{host} is not this machine, and mail to it would not be encrypted")]
    Unencrypted {
        /// The mail server.
        host: String,
    },
    /// The notice cannot be written as mail.
    #[error("the notice cannot be written as mail")]
    Unwritable,
    /// TLS is needed, and nobody is trusted here.
    #[error("the certificates of this system cannot be used")]
    Certificates,
    /// The name leads nowhere.
    #[error("the name {host} cannot be resolved")]
    Dns {
        /// The host.
        host: String,
    },
    /// Nobody listens there.
    #[error("{host} refused the connection")]
    Refused {
        /// The host.
        host: String,
    },
    /// No TLS came about.
    #[error("no secure connection to {host}: {detail}")]
    Tls {
        /// The host.
        host: String,
        /// What TLS says.
        detail: String,
    },
    /// The answer did not come in time.
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
        /// What went wrong.
        detail: String,
    },
    /// The answer has a status that means failure.
    #[error("{host} answered with HTTP status {status}{}", after_colon(.excerpt))]
    Status {
        /// The host.
        host: String,
        /// The status.
        status: u16,
        /// The beginning of the body.
        excerpt: String,
        /// When to come back, as it says.
        after: Option<Duration>,
        /// The body says that it was too often.
        throttled: bool,
    },
    /// The answer has a code that means failure.
    #[error("{host} answered with error code {code}{}", after_colon(.message))]
    Code {
        /// The host.
        host: String,
        /// The code.
        code: i64,
        /// What it says about it.
        message: String,
        /// The code says that it was too often, or that the service is busy.
        throttled: bool,
    },
    /// The answer is not one that such a service gives.
    #[error("{host} did not answer like such a service does{}", after_colon(.excerpt))]
    Unexpected {
        /// The host.
        host: String,
        /// The beginning of the body.
        excerpt: String,
    },
    /// The mail server refused.
    #[error("{host} refused the mail with code {code}{}", after_colon(.message))]
    Mail {
        /// The mail server.
        host: String,
        /// Its code.
        code: u16,
        /// What it says about it.
        message: String,
    },
    /// The queue of the target was full.
    #[error("{capacity} notices were waiting already")]
    Overflow {
        /// How many can wait.
        capacity: usize,
    },
    /// The target was taken out of the settings before it was told.
    #[error("the target is no longer configured")]
    Unconfigured,
}

impl DeliveryError {
    /// Whether trying again may help.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
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
            | Self::Unwritable
            | Self::Certificates
            | Self::Tls { .. }
            | Self::Unexpected { .. }
            | Self::Overflow { .. }
            | Self::Unconfigured => false,
        }
    }

    /// When to come back, where the target says so.
    pub(super) const fn asked(&self) -> Option<Duration> {
        match self {
            Self::Status { after, .. } => *after,
            _ => None,
        }
    }
}

/// Why notices cannot be taken, or be told about.
#[derive(Debug, Error)]
pub enum NotifyError {
    /// The store cannot be used.
    #[error("deliveries cannot be kept")]
    Store(#[from] StoreError),
    /// Deliveries need a runtime.
    #[error("notices are delivered on a tokio runtime, and there is none")]
    NoRuntime,
    /// No thread could be started.
    #[error("the thread of deliveries cannot be started")]
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
