use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use toolwarden_model::document::{LocatedValue, Section, parse_duration};

use super::super::keys::{
    ACTIONS, CHANGE_TYPES, DENIALS, LISTEN, NEVER, ON_DRIFT, OUTPUT, PREFIX, ROOT, TLS, TRACES,
    WATCH,
};
use super::super::{
    ListenSettings, OnDrift, PolicySource, Settings, SettingsProblem, TlsSettings, TraceSettings,
    WatchSettings,
};
use super::SettingsReader;
use toolwarden_drift::ChangeClass;

impl SettingsReader<'_> {
    pub(super) fn settings(&mut self, at: &LocatedValue<'_>) -> Settings {
        let root = self.section(at, &ROOT);
        let mut settings = Settings::default();
        if let Some(at) = root.said("$schema") {
            self.reader.text(at);
        }
        if let Some(at) = root.said("version")
            && at.value != &Value::from(1)
        {
            self.reader.report(&at.pointer, SettingsProblem::Version);
        }
        if let Some(at) = root.said("listen") {
            settings.listen = self.listen(at);
        }
        settings.store = self.folder.join(&settings.store);
        if let Some(at) = root.said("store") {
            settings.store = self.path(at).unwrap_or(settings.store);
        }
        if let Some(at) = root.said("store_quota") {
            settings.store_quota = self.size(at).unwrap_or(settings.store_quota);
        }
        self.names(&root, &mut settings);
        if let Some(at) = root.said("policy") {
            settings.policy = self.policy(at).unwrap_or(PolicySource::Open);
        }
        if let Some(at) = root.said("denials") {
            settings.denials = self.reader.word(at, DENIALS).unwrap_or_default();
        }
        if let Some(at) = root.said("watch") {
            settings.watch = self.watch(at, &settings.watch);
        }
        if let Some(at) = root.said("timeouts") {
            settings.timeouts = self.timeouts(at, settings.timeouts);
        }
        self.servers(&root, &mut settings);
        if let Some(at) = root.said("identity") {
            settings.identity = self.identity(at, settings.listen.tls.as_ref());
        }
        if let Some(at) = root.said("alerts") {
            settings.alerts = self.alerts(at);
        }
        if let Some(at) = root.said("misuse") {
            settings.misuse = self.misuse(at);
        }
        if let Some(at) = root.said("sessions") {
            self.sessions(at, &mut settings);
        }
        if let Some(at) = root.said("drain") {
            settings.drain = self.reader.duration(at).unwrap_or(settings.drain);
        }
        if let Some(at) = root.said("traces") {
            settings.traces = self.traces(at);
        }
        self.warn_unusual(&root, &settings);
        settings
    }

    /// Reads the names and the paging of lists.
    fn names(&mut self, root: &Section<'_>, settings: &mut Settings) {
        if let Some(at) = root.said("prefix") {
            settings.prefix = self.reader.word(at, PREFIX).unwrap_or_default();
        }
        if let Some(at) = root.said("separator")
            && let Some(text) = self.line(at, "the separator")
        {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            if text.len() > 8 || !text.bytes().all(fits) {
                let message = "a separator has at most 8 letters, digits, `_`, `-` and `.`";
                self.reader
                    .report(&at.pointer, SettingsProblem::Value { message });
            }
            settings.separator = text;
        }
        if let Some(at) = root.said("client_attributes") {
            settings.client_attributes = self.attributes(at);
        }
        if let Some(at) = root.said("page_size") {
            settings.page_size = self.count(at);
        }
    }

    /// Reads names that can be part of a header's name.
    fn attributes(&mut self, at: &LocatedValue<'_>) -> Vec<String> {
        let mut names = Vec::new();
        for (name, pointer) in self.reader.texts(at, "an attribute's name") {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
            if name.len() > 64 || !name.bytes().all(fits) {
                let message = "an attribute's name has at most 64 letters, digits, `_` and `-`";
                self.reader
                    .report(&pointer, SettingsProblem::Value { message });
            }
            names.push(name);
        }
        names
    }

    fn listen(&mut self, at: &LocatedValue<'_>) -> ListenSettings {
        let section = self.section(at, &LISTEN);
        let mut listen = ListenSettings::default();
        if let Some(at) = section.said("address")
            && let Some(text) = self.line(at, "an address")
        {
            // The loopback address by its name; other names may have several addresses.
            let numeric = text.strip_prefix("localhost:");
            let numeric = numeric.map_or(text.clone(), |port| format!("127.0.0.1:{port}"));
            match numeric.parse::<SocketAddr>() {
                Ok(address) => listen.address = address,
                Err(_) => self
                    .reader
                    .report(&at.pointer, SettingsProblem::Listen { text }),
            }
        }
        if let Some(at) = section.said("tls") {
            listen.tls = self.tls(at);
        }
        if let Some(at) = section.said("public_url") {
            listen.public_url = self.address(at);
        }
        if let Some(at) = section.said("hosts") {
            listen.hosts = self.lines(at, "a host");
        }
        if let Some(at) = section.said("origins") {
            listen.origins = self.lines(at, "an origin");
        }
        if let Some(at) = section.said("max_body") {
            listen.body_bytes = self.size(at).unwrap_or(listen.body_bytes);
        }
        if let Some(at) = section.said("max_batch") {
            listen.batch = self.count(at).unwrap_or(listen.batch);
        }
        if let Some(at) = section.said("limits") {
            listen.limits = self.listen_limits(at);
        }
        listen
    }

    fn tls(&mut self, at: &LocatedValue<'_>) -> Option<TlsSettings> {
        let section = self.section(at, &TLS);
        let mut path = |key: &str| section.said(key).and_then(|at| self.path(at));
        let (certificate, key, client_ca) = (path("certificate"), path("key"), path("client_ca"));
        Some(TlsSettings {
            certificate: certificate?,
            key: key?,
            client_ca,
        })
    }

    /// Reads the watch settings; `base` has the defaults.
    pub(super) fn watch(&mut self, at: &LocatedValue<'_>, base: &WatchSettings) -> WatchSettings {
        let section = self.section(at, &WATCH);
        let mut watch = base.clone();
        if let Some(at) = section.said("every") {
            watch.check_interval = self.reader.duration(at).unwrap_or(watch.check_interval);
        }
        if let Some(at) = section.said("on_drift") {
            self.on_drift(at, &mut watch);
        }
        if let Some(at) = section.said("on_new") {
            watch.on_new = self.action(at).unwrap_or(watch.on_new);
        }
        if let Some(at) = section.said("on_finding") {
            watch.on_finding = self.action(at).unwrap_or(watch.on_finding);
        }
        if let Some(at) = section.said("before_call") {
            let [(never, ())] = *NEVER else {
                return watch;
            };
            watch.max_age_before_call = match at.value.as_str() {
                Some(word) if word == never => None,
                // Every call checks the list.
                Some(text) if parse_duration(text).is_ok_and(|it| it.is_zero()) => {
                    Some(Duration::ZERO)
                }
                _ => self.reader.duration(at),
            };
        }
        if let Some(at) = section.said("output") {
            watch.output = self.reader.word(at, OUTPUT).unwrap_or(watch.output);
        }
        if let Some(at) = section.said("strip_hidden") {
            watch.strip_hidden = self.boolean(at).unwrap_or(watch.strip_hidden);
        }
        if let Some(at) = section.said("shapes") {
            watch.shapes = self.boolean(at).unwrap_or(watch.shapes);
        }
        self.result_watch(&section, &mut watch);
        if let Some(at) = section.said("compare_time") {
            watch.compare_time = self.reader.duration(at).unwrap_or(watch.compare_time);
        }
        if let Some(at) = section.said("compare_list_time") {
            watch.compare_list_time = self.reader.duration(at).unwrap_or(watch.compare_list_time);
        }
        watch
    }

    /// Reads how results are compared, and what raises alerts.
    fn result_watch(&mut self, section: &Section<'_>, watch: &mut WatchSettings) {
        if let Some(at) = section.said("learn_results") {
            let count = self.count(at).map(|it| it.get().into());
            watch.learn_results = count.unwrap_or(watch.learn_results);
        }
        if let Some(at) = section.said("window") {
            watch.window = self.reader.duration(at).unwrap_or(watch.window);
        }
        if let Some(at) = section.said("alert_on") {
            let words = self.reader.list(at);
            let types = words
                .iter()
                .filter_map(|at| self.reader.word(at, CHANGE_TYPES));
            watch.alert_on = types.collect();
        }
        if let Some(at) = section.said("tools") {
            watch.tools = self.lines(at, "a tool's name");
        }
    }

    fn on_drift(&mut self, at: &LocatedValue<'_>, watch: &mut WatchSettings) {
        if !at.value.is_object() {
            if let Some(action) = self.action(at) {
                let classes = ChangeClass::ALL.into_iter();
                let drifted = classes.filter(|class| *class != ChangeClass::Equivalent);
                watch.on_drift.extend(drifted.map(|class| (class, action)));
            }
            return;
        }
        let section = self.section(at, &ON_DRIFT);
        for class in ChangeClass::ALL {
            let said = section.said(class.as_str());
            if let Some(action) = said.and_then(|at| self.action(at)) {
                watch.on_drift.insert(class, action);
            }
        }
    }

    fn action(&mut self, at: &LocatedValue<'_>) -> Option<OnDrift> {
        self.reader.word(at, ACTIONS)
    }

    fn traces(&mut self, at: &LocatedValue<'_>) -> Option<TraceSettings> {
        let section = self.section(at, &TRACES);
        let endpoint = section.said("otlp").and_then(|at| self.address(at));
        let sample = section.said("sample");
        let permille = sample.map_or(Some(1000), |at| self.fraction(at));
        Some(TraceSettings {
            endpoint: endpoint?,
            permille: permille?,
        })
    }

    /// Warns about settings that are legal but rarely intended.
    fn warn_unusual(&mut self, root: &Section<'_>, settings: &Settings) {
        let place = |key: &str| {
            let at = root.get(key);
            at.map_or_else(|| root.pointer.clone(), |at| at.pointer.clone())
        };
        if settings.servers.is_empty() {
            let message = match settings.file_servers.is_empty() {
                true => "there are no servers, so the gateway offers nothing",
                false => "all servers are lists in files, so the gateway offers nothing",
            };
            self.warn(&place("servers"), message);
        }
        let exposed = !settings.listen.address.ip().is_loopback();
        if exposed && settings.listen.tls.is_none() {
            let message = "other machines can reach this address, and traffic is not encrypted: set `tls`, or \
                           put a TLS proxy in front of it";
            self.warn(&place("listen"), message);
        }
        if exposed && settings.identity.anonymous.is_some() {
            let message = "other machines can reach this address, and callers need no credentials";
            self.warn(&place("identity"), message);
        }
    }
}
