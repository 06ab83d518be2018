use toolwarden_model::document::LocatedValue;

use super::super::ListenLimits;
use super::super::keys::LIMITS;
use super::SettingsReader;

impl SettingsReader<'_> {
    pub(super) fn listen_limits(&mut self, at: &LocatedValue<'_>) -> ListenLimits {
        let section = self.section(at, &LIMITS);
        let mut limits = ListenLimits::default();
        for (key, limit) in [
            ("connections", &mut limits.connections),
            ("per_address", &mut limits.per_address),
            ("per_principal", &mut limits.per_principal),
            ("unauthenticated", &mut limits.unauthenticated),
            (
                "unauthenticated_per_address",
                &mut limits.unauthenticated_per_address,
            ),
        ] {
            let said = section.said(key).and_then(|at| self.count(at));
            *limit = said.unwrap_or(*limit);
        }
        for (key, limit) in [
            ("authenticate_within", &mut limits.authenticate_within),
            ("idle", &mut limits.idle),
            ("body_within", &mut limits.body_within),
        ] {
            let said = section.said(key).and_then(|at| self.reader.duration(at));
            *limit = said.unwrap_or(*limit);
        }
        limits
    }
}
