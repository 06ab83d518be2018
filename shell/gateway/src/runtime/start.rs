//! Starts a gateway.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use toolwarden_live_guard::{AuditLog, Clock, LiveGuard, LoadedPolicy};
use toolwarden_notify::{Notifier, NotifierOptions};
use toolwarden_settings::{ServerSettings, SessionSharing, Settings, StartMode};
use toolwarden_watch::inline::{InlineOptions, InlineWatch};

use super::validate::{refuse_first, validate, validate_rules};
use super::{RunningGateway, StartError, background};
use crate::catalog::ServerCatalog;
use crate::gateway::Gateway;
use crate::http::HttpFrontend;
use crate::identity::{AllowedHosts, Identities};
use crate::listener::{HttpListener, Shutdown};
use crate::router::GatewayUpstreamObserver;
use crate::traces::Tracer;
use crate::upstream::Upstream;

/// A gateway for one agent on standard input and output.
#[derive(Debug)]
pub struct SingleAgentGateway {
    /// The gateway.
    pub gateway: Gateway,
    /// Delivers alerts.
    pub notifier: Notifier,
}

impl RunningGateway {
    /// Starts a gateway: checks everything before it binds the address, and serves nothing before
    /// [`RunningGateway::serve`].
    ///
    /// # Errors
    /// Something the settings name cannot be used.
    pub async fn start(
        settings: Settings,
        policy: LoadedPolicy,
        masked: Value,
    ) -> Result<Self, StartError> {
        refuse_first(validate(&settings, &policy))?;
        let identities = Identities::load(&settings.identity).await?;
        let listen = settings.listen.clone();
        let (gateway, notifier) = assemble(settings, policy, false)?;
        let listener = HttpListener::bind(&listen)?;
        let address = listener.local_addr();
        let allowed_hosts = AllowedHosts::new(&listen, address)?;
        let frontend = HttpFrontend::new(gateway.clone(), identities, allowed_hosts);
        background::start(&gateway, &notifier);
        Ok(Self {
            gateway,
            frontend,
            notifier,
            masked_settings: Arc::new(Mutex::new(masked)),
            shutdown: Shutdown::new(),
            certificates: listener.certificates(),
            listener: Mutex::new(Some(listener)),
            address,
        })
    }
}

impl SingleAgentGateway {
    /// Starts a gateway for one agent and, usually, one server.
    ///
    /// # Errors
    /// Something the settings name cannot be used.
    pub fn start(mut settings: Settings, policy: LoadedPolicy) -> Result<Self, StartError> {
        refuse_first(validate_rules(&settings, &policy))?;
        // There is no other agent, so one connection serves for everything.
        for server in &mut settings.servers {
            server.sessions = SessionSharing::Shared;
        }
        let (gateway, notifier) = assemble(settings, policy, true)?;
        background::start(&gateway, &notifier);
        Ok(Self { gateway, notifier })
    }

    /// Stops the servers and stores what the watch learned.
    pub async fn close(&self) {
        self.gateway.end();
        for upstream in self.gateway.upstreams() {
            upstream.close().await;
        }
        // Ends processes that left the process group of their server and hide their origin.
        toolwarden_mcp::adopted_processes::kill_all();
        drop(self.gateway.watch().flush().await);
        self.notifier.close(self.gateway.settings().drain).await;
    }
}

fn assemble(
    settings: Settings,
    policy: LoadedPolicy,
    alone: bool,
) -> Result<(Gateway, Notifier), StartError> {
    let tracer = Tracer::new(settings.traces.as_ref())?;
    let log = AuditLog::open_store(&settings.store, &policy.guard)?;
    log.set_quota(settings.store_quota as u64);
    let guard = LiveGuard::open(policy, log, Clock::default())?;
    guard.set_misuse_rules(settings.misuse);
    let watch = InlineWatch::open(&settings.store, InlineOptions::default())?;
    let notifier = open_notifier(&settings)?;
    let servers: Vec<Arc<ServerSettings>> =
        settings.servers.iter().cloned().map(Arc::new).collect();
    let gateway = Gateway::assemble(settings, guard, watch, tracer, alone);
    let catalogs = servers.into_iter().map(|it| gateway.new_server_catalog(it));
    let catalogs: Vec<Arc<ServerCatalog>> = catalogs.collect();
    gateway.set_server_catalogs(catalogs.clone(), &catalogs);
    Ok((gateway, notifier))
}

fn open_notifier(settings: &Settings) -> Result<Notifier, StartError> {
    let options = NotifierOptions {
        store: Some(settings.store.clone()),
        targets: settings.alerts.clone(),
        ..NotifierOptions::default()
    };
    Ok(Notifier::open(options)?)
}

impl Gateway {
    /// Creates a server from its settings. It opens no connection yet.
    pub(super) fn new_server_catalog(&self, settings: Arc<ServerSettings>) -> Arc<ServerCatalog> {
        let hearing = Arc::new(GatewayUpstreamObserver(Arc::downgrade(&self.shared)));
        Arc::new(ServerCatalog::new(Upstream::new(settings, hearing)))
    }

    /// Sets the servers behind the gateway, and connects the new ones that are to be connected at once.
    pub(super) fn set_server_catalogs(
        &self,
        catalogs: Vec<Arc<ServerCatalog>>,
        fresh: &[Arc<ServerCatalog>],
    ) {
        self.set_server_rules(&catalogs);
        self.shared.server_catalogs.store(Arc::new(catalogs));
        for catalog in fresh {
            if catalog.upstream.settings().start == StartMode::Eager && !self.shared.alone {
                catalog.upstream.keep_open();
            }
            background::spawn_refresh_loop(self, catalog);
        }
    }
}
