//! Applies changed settings without dropping a call.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::Value;
use toolwarden_live_guard::LoadedPolicy;
use toolwarden_settings::{Settings, SettingsChanges};

use super::validate::{refuse_first, validate};
use super::{RunningGateway, StartError};
use crate::catalog::{ListKind, ServerCatalog};
use crate::gateway::Gateway;
use crate::identity::AllowedHosts;

impl RunningGateway {
    /// Applies changed settings. Settings that need a restart are not changed, and are reported. If any part is
    /// invalid, nothing changes.
    ///
    /// # Errors
    /// The settings cannot be used.
    pub async fn reload(
        &self,
        mut settings: Settings,
        policy: LoadedPolicy,
        masked: Value,
    ) -> Result<SettingsChanges, StartError> {
        let before = self.gateway.settings();
        let changes = before.changes(&settings);
        refuse_first(validate(&settings, &policy))?;
        settings.listen.address = before.listen.address;
        if settings.listen.tls.is_some() != before.listen.tls.is_some() {
            settings.listen.tls.clone_from(&before.listen.tls);
        }
        settings.store.clone_from(&before.store);
        settings.traces.clone_from(&before.traces);
        let identities = self.frontend.identities.load();
        let identities = identities.reload(&settings.identity).await?;
        let allowed_hosts = AllowedHosts::new(&settings.listen, self.address())?;
        if let (Some(certificates), Some(tls)) = (&self.certificates, &settings.listen.tls) {
            certificates.reload(tls)?;
        }
        self.notifier.set_targets(settings.alerts.clone()).await?;
        // Nothing below can fail.
        self.frontend.replace_authenticator(identities);
        self.frontend.allowed_hosts.store(Arc::new(allowed_hosts));
        let quota = settings.store_quota as u64;
        self.gateway.guard().log().set_quota(quota);
        self.gateway.guard().exchange(policy);
        self.gateway.guard().set_misuse_rules(settings.misuse);
        self.gateway.replace_servers(settings);
        *self
            .masked_settings
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = masked;
        self.gateway.metrics().count_reload(true);
        Ok(changes)
    }

    /// Records that changed settings were refused.
    pub fn refused(&self) {
        self.gateway.metrics().count_reload(false);
    }
}

/// The interval at which a removed server is checked for requests in flight.
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(100);

impl Gateway {
    /// Replaces the servers behind the gateway. Those that stay keep their connections; removed ones are closed when
    /// they have no requests in flight.
    fn replace_servers(&self, settings: Settings) {
        let before = self.server_catalogs();
        let drain = settings.drain;
        let mut kept: Vec<Arc<ServerCatalog>> = Vec::new();
        for server in &settings.servers {
            let same = before.iter().find(|it| *it.upstream.settings() == *server);
            let catalog = match same {
                Some(catalog) => Arc::clone(catalog),
                None => self.new_server_catalog(Arc::new(server.clone())),
            };
            kept.push(catalog);
        }
        let gone = before
            .iter()
            .filter(|old| !kept.iter().any(|it| Arc::ptr_eq(it, old)));
        for catalog in gone.cloned() {
            let server = catalog.upstream.server_name();
            self.shared.in_flight_requests.drop_server(server);
            tokio::spawn(async move {
                // A request that has just found the server gets time to be sent, and its answer is awaited.
                tokio::time::sleep(drain).await;
                while catalog.upstream.status().in_flight > 0 {
                    tokio::time::sleep(IDLE_POLL_INTERVAL).await;
                }
                catalog.upstream.close().await;
            });
        }
        let fresh: Vec<Arc<ServerCatalog>> = kept
            .iter()
            .filter(|it| !before.iter().any(|old| Arc::ptr_eq(it, old)))
            .cloned()
            .collect();
        self.shared.settings.store(Arc::new(settings));
        self.set_server_catalogs(kept, &fresh);
        self.rebuild_directory();
        self.notify_all_list_changed(ListKind::Tools);
    }
}
