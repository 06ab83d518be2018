//! Where alerts go.

use std::fmt;

use toolwarden_drift::Severity;

use super::origin_of;

/// Where alerts go.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertTarget {
    /// Its name.
    pub name: String,
    /// How it is told.
    pub channel: AlertChannel,
    /// The least severity that is told.
    pub least: Severity,
}

/// How somebody is told of alerts.
#[derive(Clone, PartialEq, Eq)]
pub enum AlertChannel {
    /// Our JSON, signed with HMAC-SHA-256 where a secret is given.
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
        /// The secret it is signed with.
        secret: Option<String>,
    },
    /// A DingTalk robot.
    DingTalk {
        /// The address.
        url: String,
        /// The secret it is signed with.
        secret: Option<String>,
    },
    /// A WeCom robot.
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
    /// Not at all; only on loopback.
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

    /// Where it goes, without what lets others send there.
    #[must_use]
    pub fn destination(&self) -> String {
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
        write!(f, "{}({})", self.kind(), self.destination())
    }
}
