use toolwarden_model::document::LocatedValue;

use super::super::keys::{SERVER_LIMITS, SESSIONS};
use super::super::{ServerLimits, Settings};
use super::SettingsReader;

impl SettingsReader<'_> {
    pub(super) fn server_limits(&mut self, at: &LocatedValue<'_>) -> ServerLimits {
        let section = self.section(at, &SERVER_LIMITS);
        let mut limits = ServerLimits::default();
        let ServerLimits {
            message_bytes,
            list_bytes,
            list_entries,
            list_pages,
            messages_per_minute,
            bytes_per_minute,
            open_requests,
        } = &mut limits;
        let sizes = [
            ("message_size", message_bytes),
            ("list_size", list_bytes),
            ("bytes_per_minute", bytes_per_minute),
        ];
        for (key, size) in sizes {
            if let Some(at) = section.said(key) {
                *size = self.size(at).unwrap_or(*size);
            }
        }
        let counts = [
            ("list_entries", list_entries),
            ("list_pages", list_pages),
            ("messages_per_minute", messages_per_minute),
            ("open_requests", open_requests),
        ];
        for (key, count) in counts {
            if let Some(at) = section.said(key) {
                *count = self.count(at).unwrap_or(*count);
            }
        }
        limits
    }

    pub(super) fn sessions(&mut self, at: &LocatedValue<'_>, settings: &mut Settings) {
        let section = self.section(at, &SESSIONS);
        if let Some(at) = section.said("idle") {
            let idle = self.reader.duration(at);
            settings.session_idle = idle.unwrap_or(settings.session_idle);
        }
        let limits = &mut settings.session_limits;
        let counts = [
            ("max_requests", &mut limits.requests),
            ("max_subscriptions", &mut limits.subscriptions),
        ];
        for (key, count) in counts {
            if let Some(at) = section.said(key) {
                *count = self.count(at).unwrap_or(*count);
            }
        }
        let sizes = [
            ("in_flight", &mut limits.in_flight_bytes),
            ("replay", &mut limits.replay_bytes),
        ];
        for (key, size) in sizes {
            if let Some(at) = section.said(key) {
                *size = self.size(at).unwrap_or(*size);
            }
        }
    }
}
