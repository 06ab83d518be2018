//! The settings as types.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use toolwarden_live_guard::MisuseRules;

use crate::alert_targets::AlertTarget;
use crate::identity::IdentitySettings;
use crate::limits::SessionLimits;
use crate::listen_limits::ListenLimits;
use crate::server::{ServerSettings, Timeouts};
use crate::url::bare_url;
use crate::watch::{FileServer, WatchSettings};

/// The settings of the gateway, complete and checked. Secrets are expanded, and paths are relative to the
/// working folder of the program: those of a file were joined to the folder of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The listening address and its limits.
    pub listen: ListenSettings,
    /// The servers behind it, in written order.
    pub servers: Vec<ServerSettings>,
    /// The servers that are known from files only, in written order. The gateway does not offer them.
    pub file_servers: Vec<FileServer>,
    /// When names get their server's name as a prefix.
    pub prefix: PrefixMode,
    /// The separator between the prefix and the name.
    pub separator: String,
    /// The request attributes that clients may set.
    pub client_attributes: Vec<String>,
    /// The maximum number of tools on one page of a list; `None` means a single page.
    pub page_size: Option<NonZeroU32>,
    /// The policy.
    pub policy: PolicySource,
    /// How denials are reported.
    pub denials: DenialForm,
    /// The database file with pins, alerts and the audit log.
    pub store: PathBuf,
    /// The maximum size of the store on disk, in bytes.
    pub store_quota: usize,
    /// How callers authenticate.
    pub identity: IdentitySettings,
    /// How definitions and results are watched, unless a server has its own settings.
    pub watch: WatchSettings,
    /// The default timeouts for servers.
    pub timeouts: Timeouts,
    /// The alert destinations.
    pub alerts: Vec<AlertTarget>,
    /// When the behaviour of a principal raises an alert.
    pub misuse: MisuseRules,
    /// How long an idle conversation is kept.
    pub session_idle: Duration,
    /// How much one conversation may use.
    pub session_limits: SessionLimits,
    /// How long calls in flight may take after SIGTERM.
    pub drain: Duration,
    /// Where to send traces (OTLP over HTTP); needs the feature `otel`.
    pub traces: Option<TraceSettings>,
}

/// The listening address, and the requests that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenSettings {
    /// The address; port 0 takes a free one.
    pub address: SocketAddr,
    /// The certificate and key for TLS.
    pub tls: Option<TlsSettings>,
    /// The URL under which agents reach the gateway, for metadata; `None` means their `Host` header.
    pub public_url: Option<String>,
    /// Additional accepted values of `Host`; loopback names and the listening address are always accepted.
    pub hosts: Vec<String>,
    /// Accepted values of `Origin`. Requests without one are always accepted, and so are loopback origins
    /// on a loopback address.
    pub origins: Vec<String>,
    /// The maximum size of a message from an agent.
    pub body_bytes: usize,
    /// The maximum number of messages in one batch.
    pub batch: NonZeroU32,
    /// Connection limits.
    pub limits: ListenLimits,
}

/// The TLS certificate of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// The certificate chain, PEM.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
    /// The authorities that issue client certificates for principals, PEM.
    pub client_ca: Option<PathBuf>,
}

/// When names get their server's name as a prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixMode {
    /// Always, so that adding a server renames nothing.
    #[default]
    Always,
    /// If two servers use the same name.
    Conflict,
    /// Never: a name that two servers share is refused.
    Never,
}

/// The source of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicySource {
    /// None: every tool is known, in the group `default`, and any authenticated caller may call it.
    Open,
    /// A policy file.
    File(PathBuf),
    /// The text of a policy, written in the settings.
    Inline(String),
}

/// How denials are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenialForm {
    /// As a tool result with an error and its reason, which a model reads.
    #[default]
    ToolError,
    /// As a protocol error.
    RpcError,
}

/// Where to send traces.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceSettings {
    /// The OTLP address.
    pub endpoint: String,
    /// The share of calls to trace, in thousandths.
    pub permille: u32,
}

impl Settings {
    /// The default name of the settings file.
    pub const FILE: &'static str = "toolwarden.yaml";
}

impl Default for Settings {
    /// No servers, no callers, everything watched.
    fn default() -> Self {
        Self {
            listen: ListenSettings::default(),
            servers: Vec::new(),
            file_servers: Vec::new(),
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

impl Default for ListenSettings {
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
