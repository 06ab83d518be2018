//! `toolwarden.yaml`: everything the gateway is told, in types, and how it is read.
//!
//! The keys stand in one table (`keys`), from which the reader, the JSON Schema and the masked form
//! are made.

mod alerting;
mod changes;
mod clients;
mod identity;
mod interpolate;
mod keys;
mod limits;
mod listen_limits;
mod masked;
mod principals;
mod problem;
mod read;
mod reference;
mod schema;
mod secrets;
mod server;
mod size;
mod table;
mod url;
mod watching;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use crate::guard::MisuseRules;

pub use alerting::{AlertChannel, AlertTarget, SmtpSecurity};
pub use changes::SettingsChanges;
pub use clients::{
    Client, ClientFileError, ImportedServer, ImportedServers, Os, import, places, places_on,
    to_yaml,
};
pub use identity::{
    AdminSettings, ApiKeySettings, CertificateSettings, IdentitySettings, JwtKeys, JwtSettings,
    KEY_MAX_STALE, KEY_REFRESH, RoleClaim,
};
pub use interpolate::InvalidReference;
pub use limits::{ServerLimits, SessionLimits};
pub use listen_limits::ListenLimits;
pub use principals::{AmbiguousPrincipals, NameSource, PrincipalNames};
pub use problem::{SettingsError, SettingsMistake, SettingsProblem, SettingsWarning};
pub use read::Loaded;
pub use reference::reference;
pub use schema::schema;
pub use server::{
    Breaker, ProtocolChoice, Restart, ServerSettings, SessionSharing, Start, Timeouts,
    is_server_name,
};
pub use url::{bare_url, is_loopback_or_https, origin_of};
pub use watching::{OnDrift, Trust, WatchSettings};

/// What the gateway is told, complete and checked. Secrets are in place, and paths start where the
/// program does: those of a file were joined to the folder of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where it listens.
    pub listen: Listen,
    /// The servers behind it, in written order.
    pub servers: Vec<ServerSettings>,
    /// When names get the name of their server put before them.
    pub prefix: PrefixMode,
    /// What stands between the two.
    pub separator: String,
    /// The attributes that clients may give their requests.
    pub client_attributes: Vec<String>,
    /// The most tools of one page of a list; none means that lists come whole.
    pub page_size: Option<NonZeroU32>,
    /// The rules of the guard.
    pub policy: PolicySource,
    /// How refusals are told.
    pub denials: DenialForm,
    /// The file of pins, alerts and the audit log.
    pub store: PathBuf,
    /// The most bytes the store may take on the disk.
    pub store_quota: usize,
    /// Who callers are.
    pub identity: IdentitySettings,
    /// How definitions and results are watched, where a server says nothing else.
    pub watch: WatchSettings,
    /// How long servers may take, where a server says nothing else.
    pub timeouts: Timeouts,
    /// Where alerts go.
    pub alerts: Vec<AlertTarget>,
    /// When the behaviour of a principal is an alert.
    pub misuse: MisuseRules,
    /// How long a conversation without a message is remembered.
    pub session_idle: Duration,
    /// How much one conversation may use.
    pub session_limits: SessionLimits,
    /// How long calls under way may take after SIGTERM.
    pub drain: Duration,
    /// Where traces go (OTLP over HTTP); needs the feature `otel`.
    pub traces: Option<TraceSettings>,
}

/// Where the gateway listens, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address; port 0 takes a free one.
    pub address: SocketAddr,
    /// Certificate and key, where it speaks TLS itself.
    pub tls: Option<TlsSettings>,
    /// How agents reach it, for metadata; none means by the `Host` they use.
    pub public_url: Option<String>,
    /// Further values of `Host` that are answered; loopback names and the listening address always are.
    pub hosts: Vec<String>,
    /// Values of `Origin` that are answered; requests without one always are, and loopback origins on a
    /// loopback address.
    pub origins: Vec<String>,
    /// The largest message of an agent.
    pub body_bytes: usize,
    /// The most messages of one batch.
    pub batch: NonZeroU32,
    /// What connections may cost.
    pub limits: ListenLimits,
}

/// A certificate to listen with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// The certificate chain, PEM.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
    /// Authorities whose client certificates name principals, PEM.
    pub client_ca: Option<PathBuf>,
}

/// When names get the name of their server put before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixMode {
    /// Always, so that adding a server renames nothing.
    #[default]
    Always,
    /// Where two servers have the same name for something.
    Conflict,
    /// Never: what two servers both have is refused.
    Never,
}

/// Where the rules of the guard come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicySource {
    /// Nowhere: every tool is known, in the group `default`, and everybody who is somebody may call it.
    Open,
    /// A policy file.
    File(PathBuf),
    /// The text of a policy, written in the settings.
    Inline(String),
}

/// How refusals are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenialForm {
    /// As a result of the tool that says it failed and why, which a model reads.
    #[default]
    ToolError,
    /// As an error of the protocol.
    RpcError,
}

/// Where traces go.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceSettings {
    /// The OTLP address.
    pub endpoint: String,
    /// The share of calls that are traced, in thousandths.
    pub permille: u32,
}

impl Settings {
    /// The name of the file that is read where nobody names one.
    pub const FILE: &'static str = "toolwarden.yaml";
}

impl Default for Settings {
    /// No servers, nobody who may call, everything watched.
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            servers: Vec::new(),
            prefix: PrefixMode::default(),
            separator: "__".to_owned(),
            client_attributes: Vec::new(),
            page_size: None,
            policy: PolicySource::Open,
            denials: DenialForm::default(),
            store: PathBuf::from("toolwarden.db"),
            store_quota: 10 << 30,
            identity: IdentitySettings::default(),
            watch: WatchSettings::default(),
            timeouts: Timeouts::default(),
            alerts: Vec::new(),
            misuse: MisuseRules::default(),
            session_idle: Duration::from_secs(30 * 60),
            session_limits: SessionLimits::default(),
            drain: Duration::from_secs(10),
            traces: None,
        }
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8700),
            tls: None,
            public_url: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            body_bytes: 8 << 20,
            batch: const { NonZeroU32::new(100).unwrap() },
            limits: ListenLimits::default(),
        }
    }
}

impl fmt::Debug for TraceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceSettings")
            .field("endpoint", &bare_url(&self.endpoint))
            .field("permille", &self.permille)
            .finish()
    }
}

#[cfg(test)]
mod tests;
