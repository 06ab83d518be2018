//! Errors of starting a gateway or changing its settings.

use thiserror::Error;
use toolwarden_guard::PolicyError;
use toolwarden_live_guard::PolicyFileError;
use toolwarden_live_guard::limiter::NoRandomness;
use toolwarden_model::GroupName;
use toolwarden_notify::NotifyError;
use toolwarden_settings::SettingsError;
use toolwarden_store::StoreError;
use toolwarden_watch::inline::WatchError;

use crate::identity::IdentityError;
use crate::listener::ListenError;
use crate::traces::TraceError;

/// Why a gateway does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A token would grant a role that the policy does not define.
    #[error(
        "`identity.jwt` gives the role `{role}` for `{value}`, and the policy has no such role; add it under `roles` \
         in the policy"
    )]
    UnknownRole {
        /// The value of the claim.
        value: String,
        /// The role.
        role: String,
    },
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    /// The tool defaults of a server are invalid.
    #[error("servers.{server}.tool_defaults{}", join_mistakes(mistakes))]
    ToolDefaults {
        /// The server.
        server: String,
        /// Every mistake.
        mistakes: Vec<PolicyError>,
    },
    /// A condition tests an attribute that no client may send.
    #[error(
        "the condition of group `{group}` asks about `request.{attribute}`, which no client may send; add `{attribute}` to `client_attributes`, or change the condition"
    )]
    NoSuchAttribute {
        /// The group.
        group: GroupName,
        /// The attribute.
        attribute: String,
    },
    /// The store cannot be used.
    #[error("the store cannot be used")]
    Store(#[from] StoreError),
    /// The watch cannot be started.
    #[error("definitions cannot be watched")]
    Watch(#[from] WatchError),
    /// Alerts cannot be delivered.
    #[error("alerts cannot be delivered")]
    Notify(#[from] NotifyError),
    /// Callers cannot be authenticated.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// No caller is configured, so every request would be refused.
    #[error(
        "no caller could use the gateway: name callers under `identity` (api_keys, jwt, certificates), or let all callers on this machine in with `identity: {{anonymous: <name>}}`"
    )]
    NoCallers,
    /// Traces cannot be exported.
    #[error(transparent)]
    Traces(#[from] TraceError),
    /// The gateway cannot listen at the address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system has no randomness.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

/// Why changed settings are not applied. The settings in force stay in force.
#[derive(Debug, Error)]
pub enum ReloadError {
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Something they name cannot be used.
    #[error(transparent)]
    Start(#[from] StartError),
}

fn join_mistakes(mistakes: &[PolicyError]) -> String {
    let mistakes = mistakes.iter().map(|it| format!("{}: {it}", it.pointer));
    mistakes.collect::<Vec<_>>().join("; ")
}
