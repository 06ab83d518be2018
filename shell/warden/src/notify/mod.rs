//! Alerts out: notices go to webhooks, chats and mailboxes.
//!
//! A notice reaches each target whose least severity it has, once: what was delivered is kept in the
//! store, what was not is resumed after a restart. Nothing here makes the sender wait.

mod answer;
mod error;
mod keeper;
mod lane;
mod mail;
mod mask;
mod message;
mod notice;
mod notifier;
mod pace;
mod post;
mod sign;
mod target;
mod text;

pub use error::{DeliveryError, NotifyError};
pub use lane::{GivenUp, GivenUpHook, LastError, TargetStatus};
pub use message::ALERT_SCHEMA;
pub use notice::{Notice, NoticeKind};
pub use notifier::{Notifier, NotifierOptions, NotifierStatus, Sent, Tested, test};
pub use pace::Pace;
