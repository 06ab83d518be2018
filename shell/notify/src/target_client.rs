use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::{Client, Url};
use tokio::time::timeout;

use super::error::DeliveryError;
use super::http_post::{client, host, post};
use super::mailer::{Mailer, SmtpAccount, host_and_port};
use super::message::compose;
use super::notice::Notice;
use super::redact::TargetSecrets;
use super::webhook_response::check_response;
use toolwarden_settings::{AlertChannel, AlertTarget};

/// A target that is ready for delivery. Its debug output shows the host and no secret.
pub(super) struct TargetClient {
    channel: AlertChannel,
    host: String,
    secrets: TargetSecrets,
    timeout: Duration,
    /// An invalid target reports its error with every notice.
    transport: Result<TargetTransport, DeliveryError>,
}

enum TargetTransport {
    Http(Url, Client),
    Mail(Mailer),
}

impl fmt::Debug for TargetClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({} at {})", self.channel.kind(), self.host)
    }
}

impl TargetClient {
    pub(super) fn new(settings: &AlertTarget, timeout: Duration) -> Self {
        let channel = settings.channel.clone();
        let transport = match &channel {
            AlertChannel::Webhook { url, .. }
            | AlertChannel::Slack { url }
            | AlertChannel::Feishu { url, .. }
            | AlertChannel::DingTalk { url, .. }
            | AlertChannel::WeCom { url } => {
                client(url).map(|(url, it)| TargetTransport::Http(url, it))
            }
            AlertChannel::Smtp {
                server,
                security,
                credentials,
                from,
                to,
            } => {
                let account = SmtpAccount {
                    server,
                    security: *security,
                    credentials: credentials.as_ref(),
                    from,
                    to,
                };
                Mailer::new(&account, timeout).map(TargetTransport::Mail)
            }
        };
        Self {
            host: display_host(&channel),
            secrets: TargetSecrets::of(&channel),
            timeout,
            transport,
            channel,
        }
    }

    /// Delivers a notice once, without retries.
    pub(super) async fn deliver(
        &self,
        notice: &Notice,
        now: Timestamp,
    ) -> Result<(), DeliveryError> {
        let telling = timeout(self.timeout, self.send(notice, now));
        telling.await.unwrap_or_else(|_elapsed| {
            Err(DeliveryError::Timeout {
                host: self.host.clone(),
            })
        })
    }

    async fn send(&self, notice: &Notice, now: Timestamp) -> Result<(), DeliveryError> {
        match &self.transport {
            Err(error) => Err(error.clone()),
            Ok(TargetTransport::Mail(mailer)) => mailer.send(notice, &self.secrets, now).await,
            Ok(TargetTransport::Http(url, client)) => {
                let Some(message) = compose(&self.channel, url, notice, now) else {
                    return Err(DeliveryError::Address);
                };
                let answer = post(client, message, &self.secrets, now).await?;
                check_response(&self.channel, &self.host, &self.secrets, &answer)
            }
        }
    }
}

/// The host of a channel, without parts that may be secret.
pub(super) fn display_host(channel: &AlertChannel) -> String {
    match channel {
        AlertChannel::Webhook { url, .. }
        | AlertChannel::Slack { url }
        | AlertChannel::Feishu { url, .. }
        | AlertChannel::DingTalk { url, .. }
        | AlertChannel::WeCom { url } => host(url),
        AlertChannel::Smtp { server, .. } => host_and_port(server)
            .map(|(host, port)| format!("{host}:{port}"))
            .unwrap_or_default(),
    }
}
