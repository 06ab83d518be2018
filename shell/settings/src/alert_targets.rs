//! Alert destinations.

use std::fmt;

use toolwarden_model::Severity;

use super::origin_of;

/// An alert destination.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertTarget {
    /// Its name.
    pub name: String,
    /// Its channel.
    pub channel: AlertChannel,
    /// The minimum severity.
    pub min_severity: Severity,
}

/// The channel of an alert destination.
#[derive(Clone, PartialEq, Eq)]
pub enum AlertChannel {
    /// Our JSON, signed with HMAC-SHA-256 if a secret is set.
    Webhook {
        /// The address.
        url: String,
        /// The secret.
        secret: Option<String>,
    },
    /// A Slack incoming webhook.
    Slack {
        /// The address.
        url: String,
    },
    /// A Feishu bot.
    Feishu {
        /// The address.
        url: String,
        /// The signing secret.
        secret: Option<String>,
    },
    /// A DingTalk bot.
    DingTalk {
        /// The address.
        url: String,
        /// The signing secret.
        secret: Option<String>,
    },
    /// A WeCom bot.
    WeCom {
        /// The address.
        url: String,
    },
    /// E-mail.
    Smtp {
        /// Host and port.
        server: String,
        /// How the connection is secured.
        security: SmtpSecurity,
        /// User and password.
        credentials: Option<(String, String)>,
        /// The sender.
        from: String,
        /// The recipients.
        to: Vec<String>,
    },
}

/// How a connection to a mail server is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpSecurity {
    /// Unencrypted; on loopback only.
    None,
    /// By STARTTLS.
    StartTls,
    /// TLS from the start.
    Tls,
}

impl AlertChannel {
    /// The word for it in files and reports.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Webhook { .. } => "webhook",
            Self::Slack { .. } => "slack",
            Self::Feishu { .. } => "feishu",
            Self::DingTalk { .. } => "dingtalk",
            Self::WeCom { .. } => "wecom",
            Self::Smtp { .. } => "smtp",
        }
    }

    /// Its address, without the part that would let others send there.
    #[must_use]
    pub fn masked_address(&self) -> String {
        match self {
            Self::Webhook { url, .. }
            | Self::Slack { url }
            | Self::Feishu { url, .. }
            | Self::DingTalk { url, .. }
            | Self::WeCom { url } => origin_of(url),
            Self::Smtp { server, .. } => server.clone(),
        }
    }
}

impl fmt::Debug for AlertChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.kind(), self.masked_address())
    }
}
