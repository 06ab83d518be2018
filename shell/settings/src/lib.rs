//! `toolwarden.yaml`: the settings of the gateway and of the watch commands as types, and how they are read.
//!
//! One table (`keys`) defines all keys; the reader, the JSON Schema and the masked form derive from it.

mod alert_targets;
mod changes;
mod clients;
mod comparison_timeouts;
mod error;
mod identity;
mod interpolate;
mod json_schema;
mod key_table;
mod keys;
mod limits;
mod listen_limits;
mod markdown_reference;
mod mask;
mod mask_secrets;
mod principal_names;
mod read;
mod secrets;
mod server;
mod settings;
mod size;
mod url;
mod watch;

pub use alert_targets::{AlertChannel, AlertTarget, SmtpSecurity};
pub use changes::SettingsChanges;
pub use clients::{
    ClientApp, ClientFileError, ImportedServer, ImportedServers, Os, config_paths, config_paths_on,
    import_client_file, to_yaml,
};
pub use comparison_timeouts::ComparisonTimeouts;
pub use error::{SettingsError, SettingsMistake, SettingsProblem, SettingsWarning};
pub use identity::{
    AdminSettings, ApiKeySettings, CertificateSettings, IdentitySettings, JwtKeys, JwtSettings,
    KEY_MAX_STALE, KEY_REFRESH, RoleClaim,
};
pub use interpolate::InvalidReference;
pub use json_schema::schema;
pub use limits::{ServerLimits, SessionLimits};
pub use listen_limits::ListenLimits;
pub use markdown_reference::markdown_reference;
pub use principal_names::{AmbiguousPrincipals, NameSource, PrincipalNames};
pub use read::LoadedSettings;
pub use server::{
    BreakerSettings, ProtocolChoice, RestartSettings, ServerSettings, SessionSharing, StartMode,
    Timeouts, is_server_name,
};
pub use settings::{
    DenialForm, ListenSettings, PolicySource, PrefixMode, Settings, TlsSettings, TraceSettings,
};
pub use url::{bare_url, is_loopback_or_https, origin_of};
pub use watch::{FileServer, OnDrift, SampleCall, TrustMode, WatchSettings};

#[cfg(test)]
mod tests;
