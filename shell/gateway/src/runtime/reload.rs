//! Changed settings, taken over without dropping a call.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::Value;
use toolwarden_warden::guard::LoadedPolicy;
use toolwarden_warden::settings::{Settings, SettingsChanges};

use super::start::{check_attributes, check_defaults, check_roles};
use super::{Running, StartError};
use crate::catalogue::{Kind, Shelf};
use crate::gateway::Gateway;
use crate::identity::Site;

impl Running {
    /// Takes changed settings over. What needs a restart stays as it was and is told. Where anything
    /// cannot be used, nothing changes.
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
        check_defaults(&settings)?;
        check_attributes(&settings, &policy)?;
        if !settings.identity.knows_somebody() {
            return Err(StartError::NoCallers);
        }
        settings.listen.address = before.listen.address;
        if settings.listen.tls.is_some() != before.listen.tls.is_some() {
            settings.listen.tls.clone_from(&before.listen.tls);
        }
        settings.store.clone_from(&before.store);
        settings.traces.clone_from(&before.traces);
        let identities = self.front.identities.load();
        let identities = identities.reload(&settings.identity).await?;
        check_roles(&settings, &policy)?;
        let site = Site::new(&settings.listen, self.address())?;
        if let (Some(certificates), Some(tls)) = (&self.certificates, &settings.listen.tls) {
            certificates.reload(tls)?;
        }
        self.notifier.set_targets(settings.alerts.clone()).await?;
        // From here on nothing fails.
        self.front.take_over_identities(identities);
        self.front.site.store(Arc::new(site));
        let quota = settings.store_quota as u64;
        self.gateway.guard().log().set_quota(quota);
        self.gateway.guard().exchange(policy);
        self.gateway.guard().set_misuse_rules(settings.misuse);
        self.gateway.take_over(settings);
        *self.masked.lock().unwrap_or_else(PoisonError::into_inner) = masked;
        self.gateway.metrics().reloaded(true);
        Ok(changes)
    }

    /// Says that changed settings were refused.
    pub fn refused(&self) {
        self.gateway.metrics().reloaded(false);
    }
}

/// How often a server that goes is looked at for what is under way.
const IDLE_LOOK: Duration = Duration::from_millis(100);

impl Gateway {
    /// Puts other servers behind the gateway. Those that stay keep their connections; those that go end
    /// when nothing is under way any more.
    fn take_over(&self, settings: Settings) {
        let before = self.shelves();
        let drain = settings.drain;
        let mut kept: Vec<Arc<Shelf>> = Vec::new();
        for server in &settings.servers {
            let same = before.iter().find(|it| *it.upstream.settings() == *server);
            let shelf = match same {
                Some(shelf) => Arc::clone(shelf),
                None => self.new_shelf(Arc::new(server.clone())),
            };
            kept.push(shelf);
        }
        let gone = before
            .iter()
            .filter(|old| !kept.iter().any(|it| Arc::ptr_eq(it, old)));
        for shelf in gone.cloned() {
            tokio::spawn(async move {
                // Whoever found it just now gets time to ask, and what it was asked is answered.
                tokio::time::sleep(drain).await;
                while shelf.upstream.status().in_flight > 0 {
                    tokio::time::sleep(IDLE_LOOK).await;
                }
                shelf.upstream.close().await;
            });
        }
        let fresh: Vec<Arc<Shelf>> = kept
            .iter()
            .filter(|it| !before.iter().any(|old| Arc::ptr_eq(it, old)))
            .cloned()
            .collect();
        self.shared.settings.store(Arc::new(settings));
        self.set_shelves(kept, &fresh);
        self.rebuild();
        self.tell_all_list_changed(Kind::Tools);
    }
}
