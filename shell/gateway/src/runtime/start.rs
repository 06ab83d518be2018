//! Putting a gateway together.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use toolwarden_guard::ToolPolicy;
use toolwarden_warden::guard::{Clock, LiveGuard, LoadedPolicy, Log};
use toolwarden_warden::inline::{InlineOptions, InlineWatch};
use toolwarden_warden::notify::{Notifier, NotifierOptions};
use toolwarden_warden::settings::{ServerSettings, SessionSharing, Settings, Start};

use super::{Running, StartError, background};
use crate::catalogue::Shelf;
use crate::gateway::Gateway;
use crate::http::Front;
use crate::identity::{Identities, Site};
use crate::listener::{Listener, Shutdown};
use crate::relay::GatewayHearing;
use crate::traces::Tracer;
use crate::upstream::Upstream;

/// A gateway for one agent on standard streams.
#[derive(Debug)]
pub struct Alone {
    /// The gateway.
    pub gateway: Gateway,
    /// Who tells people of alerts.
    pub notifier: Notifier,
}

impl Running {
    /// Starts a gateway: everything is checked before the address is taken, and nothing is served before
    /// [`Running::serve`].
    ///
    /// # Errors
    /// Something the settings name cannot be used.
    pub async fn start(
        settings: Settings,
        policy: LoadedPolicy,
        masked: Value,
    ) -> Result<Self, StartError> {
        if !settings.identity.knows_somebody() {
            return Err(StartError::NoCallers);
        }
        check_roles(&settings, &policy)?;
        let identities = Identities::load(&settings.identity).await?;
        let listen = settings.listen.clone();
        let (gateway, notifier) = assemble(settings, policy, false)?;
        let listener = Listener::bind(&listen)?;
        let address = listener.local_addr();
        let site = Site::new(&listen, address)?;
        let front = Front::new(gateway.clone(), identities, site);
        background::start(&gateway, &notifier);
        Ok(Self {
            gateway,
            front,
            notifier,
            masked: Arc::new(Mutex::new(masked)),
            shutdown: Shutdown::new(),
            certificates: listener.certificates(),
            listener: Mutex::new(Some(listener)),
            address,
        })
    }
}

impl Alone {
    /// Starts a gateway for one agent and, as a rule, one server.
    ///
    /// # Errors
    /// Something the settings name cannot be used.
    pub fn start(mut settings: Settings, policy: LoadedPolicy) -> Result<Self, StartError> {
        // One agent shares its server with no other, so that one connection serves for all it does.
        for server in &mut settings.servers {
            server.sessions = SessionSharing::Shared;
        }
        let (gateway, notifier) = assemble(settings, policy, true)?;
        background::start(&gateway, &notifier);
        Ok(Self { gateway, notifier })
    }

    /// Ends servers and keeps what was learned.
    pub async fn close(&self) {
        self.gateway.end();
        for upstream in self.gateway.upstreams() {
            upstream.close().await;
        }
        // What left the process group of its server and hides its origin.
        toolwarden_mcp::orphans::end_all();
        drop(self.gateway.watch().flush().await);
        self.notifier.close(self.gateway.settings().drain).await;
    }
}

fn assemble(
    settings: Settings,
    policy: LoadedPolicy,
    alone: bool,
) -> Result<(Gateway, Notifier), StartError> {
    check_defaults(&settings)?;
    check_attributes(&settings, &policy)?;
    let tracer = Tracer::new(settings.traces.as_ref())?;
    let log = Log::kept(&settings.store, &policy.guard)?;
    log.set_quota(settings.store_quota as u64);
    let guard = LiveGuard::open(policy, log, Clock::default())?;
    guard.set_misuse_rules(settings.misuse);
    let watch = InlineWatch::open(&settings.store, InlineOptions::default())?;
    let notifier = open_notifier(&settings)?;
    let servers: Vec<Arc<ServerSettings>> =
        settings.servers.iter().cloned().map(Arc::new).collect();
    let gateway = Gateway::assemble(settings, guard, watch, tracer, alone);
    let shelves = servers.into_iter().map(|it| gateway.new_shelf(it));
    let shelves: Vec<Arc<Shelf>> = shelves.collect();
    gateway.set_shelves(shelves.clone(), &shelves);
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

/// Rules that cannot be read must not be found out when a tool is withheld for them.
pub(super) fn check_defaults(settings: &Settings) -> Result<(), StartError> {
    for server in &settings.servers {
        if let Some(defaults) = &server.tool_defaults
            && let Err(mistakes) = ToolPolicy::read_defaults(defaults)
        {
            return Err(StartError::ToolDefaults {
                server: server.name.clone(),
                mistakes,
            });
        }
    }
    Ok(())
}

/// Roles that tokens give have to be roles of the policy: a misspelled one would give nothing.
pub(super) fn check_roles(settings: &Settings, policy: &LoadedPolicy) -> Result<(), StartError> {
    for jwt in &settings.identity.jwt {
        let given = jwt.roles.iter().flat_map(|roles| roles.map.iter());
        for (value, roles) in given {
            if let Some(role) = roles.iter().find(|role| !policy.guard.has_role(role)) {
                return Err(StartError::UnknownRole {
                    value: value.clone(),
                    role: role.clone(),
                });
            }
        }
    }
    Ok(())
}

/// A condition that could never be evaluated would keep its group off without a word.
pub(super) fn check_attributes(
    settings: &Settings,
    policy: &LoadedPolicy,
) -> Result<(), StartError> {
    for (attribute, group) in policy.guard.asked_attributes() {
        if !settings.client_attributes.contains(&attribute) {
            return Err(StartError::NoSuchAttribute { group, attribute });
        }
    }
    Ok(())
}

impl Gateway {
    /// A server as the settings describe it, reached when it should be.
    pub(super) fn new_shelf(&self, settings: Arc<ServerSettings>) -> Arc<Shelf> {
        let hearing = Arc::new(GatewayHearing(Arc::downgrade(&self.shared)));
        Arc::new(Shelf::new(Upstream::new(settings, hearing)))
    }

    /// Puts servers behind the gateway, and reaches those of the new ones that are to be reached at once.
    pub(super) fn set_shelves(&self, shelves: Vec<Arc<Shelf>>, fresh: &[Arc<Shelf>]) {
        self.set_server_rules(&shelves);
        self.shared.shelves.store(Arc::new(shelves));
        for shelf in fresh {
            if shelf.upstream.settings().start == Start::Eager && !self.shared.alone {
                shelf.upstream.keep_open();
            }
            background::look_regularly(self, shelf);
        }
    }
}
