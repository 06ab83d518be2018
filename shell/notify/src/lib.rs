//! Alert delivery: sends notices to webhooks, chats and mailboxes.
//!
//! A notice reaches each target whose minimum severity it meets, once: the store records completed
//! deliveries, and a restart resumes the others. Nothing here blocks the sender.

mod change_notice;
mod delivery_command;
mod delivery_log;
mod error;
mod hmac;
mod http_post;
mod mailer;
mod message;
mod notice;
mod notifier;
mod redact;
mod retry;
mod sanitize;
mod target_client;
mod target_queue;
mod target_status;
mod webhook_response;

pub use change_notice::ChangeSource;
pub use error::{DeliveryError, NotifyError};
pub use message::ALERT_SCHEMA;
pub use notice::{Notice, NoticeKind};
pub use notifier::{Notifier, NotifierOptions, NotifierStatus, SendOutcome, TestDelivery, test};
pub use retry::RetryPolicy;
pub use target_status::{FailedDelivery, FailedDeliveryHook, LastDeliveryError, TargetStatus};
