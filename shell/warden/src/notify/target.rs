use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::{Client, Url};
use tokio::time::timeout;

use super::answer::judge;
use super::error::DeliveryError;
use super::mail::{Account, Mailer, place};
use super::mask::Mask;
use super::message::compose;
use super::notice::Notice;
use super::post::{client, host, post};
use crate::settings::{AlertChannel, AlertTarget};

/// A target that is ready to be told. It shows its host and no secret.
pub(super) struct Target {
    channel: AlertChannel,
    host: String,
    mask: Mask,
    timeout: Duration,
    /// What is wrong with it is told with every notice.
    road: Result<Road, DeliveryError>,
}

enum Road {
    Http(Url, Client),
    Mail(Mailer),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({} at {})", self.channel.kind(), self.host)
    }
}

impl Target {
    pub(super) fn new(settings: &AlertTarget, timeout: Duration) -> Self {
        let channel = settings.channel.clone();
        let road = match &channel {
            AlertChannel::Webhook { url, .. }
            | AlertChannel::Slack { url }
            | AlertChannel::Feishu { url, .. }
            | AlertChannel::DingTalk { url, .. }
            | AlertChannel::WeCom { url } => client(url).map(|(url, it)| Road::Http(url, it)),
            AlertChannel::Smtp {
                server,
                security,
                credentials,
                from,
                to,
            } => {
                let account = Account {
                    server,
                    security: *security,
                    credentials: credentials.as_ref(),
                    from,
                    to,
                };
                Mailer::new(&account, timeout).map(Road::Mail)
            }
        };
        Self {
            host: shown_host(&channel),
            mask: Mask::of(&channel),
            timeout,
            road,
            channel,
        }
    }

    /// Tells the target once.
    pub(super) async fn tell(&self, notice: &Notice, now: Timestamp) -> Result<(), DeliveryError> {
        let telling = timeout(self.timeout, self.telling(notice, now));
        telling.await.unwrap_or_else(|_elapsed| {
            Err(DeliveryError::Timeout {
                host: self.host.clone(),
            })
        })
    }

    async fn telling(&self, notice: &Notice, now: Timestamp) -> Result<(), DeliveryError> {
        match &self.road {
            Err(error) => Err(error.clone()),
            Ok(Road::Mail(mailer)) => mailer.send(notice, &self.mask, now).await,
            Ok(Road::Http(url, client)) => {
                let Some(message) = compose(&self.channel, url, notice, now) else {
                    return Err(DeliveryError::Address);
                };
                let answer = post(client, message, &self.mask, now).await?;
                judge(&self.channel, &self.host, &self.mask, &answer)
            }
        }
    }
}

/// Where a channel leads, without what may be secret.
pub(super) fn shown_host(channel: &AlertChannel) -> String {
    match channel {
        AlertChannel::Webhook { url, .. }
        | AlertChannel::Slack { url }
        | AlertChannel::Feishu { url, .. }
        | AlertChannel::DingTalk { url, .. }
        | AlertChannel::WeCom { url } => host(url),
        AlertChannel::Smtp { server, .. } => place(server)
            .map(|(host, port)| format!("{host}:{port}"))
            .unwrap_or_default(),
    }
}
