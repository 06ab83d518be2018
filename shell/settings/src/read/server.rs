use serde_json::Value;
use toolwarden_mcp::{Command, Endpoint, EnvInheritance, InvalidEndpoint, ServerUrl};
use toolwarden_model::document::{DiagnosticKind, LocatedValue, Section};
use toolwarden_model::json::Object;

use super::super::keys::{
    BREAKER, CALL, CLIENT_SERVER, ClientTransport, PROTOCOL, RESTART, SERVER, SHARING, START,
    TIMEOUTS, TRUST, TYPE,
};
use super::super::{
    BreakerSettings, FileServer, RestartSettings, SampleCall, ServerSettings, Settings,
    SettingsProblem, Timeouts, is_server_name,
};
use super::SettingsReader;

/// The author of a server's entry, which decides how it is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerSyntax {
    Native,
    Client,
}

/// An entry of the servers.
enum ServerEntry {
    Reachable(Box<ServerSettings>),
    Files(Box<FileServer>),
}

/// Where the tools of a server are.
enum ServerAddress {
    Endpoint(Endpoint),
    Files,
}

impl SettingsReader<'_> {
    /// Reads the servers; the other settings have their defaults.
    pub(super) fn servers(&mut self, root: &Section<'_>, settings: &mut Settings) {
        let mut names: Vec<String> = Vec::new();
        let lists = [
            ("servers", ServerSyntax::Native),
            ("mcp_servers", ServerSyntax::Client),
        ];
        for (key, writer) in lists {
            let Some(at) = root.said(key) else { continue };
            for (name, at) in self.reader.named(at, "a server's name") {
                if !is_server_name(name) {
                    self.reader.report(&at.pointer, SettingsProblem::ServerName);
                }
                if names.iter().any(|known| known == name) {
                    let name = name.to_owned();
                    self.reader
                        .report(&at.pointer, SettingsProblem::DuplicateServer { name });
                }
                match self.server(name, &at, writer, settings) {
                    Some(ServerEntry::Reachable(server)) => settings.servers.push(*server),
                    Some(ServerEntry::Files(server)) => settings.file_servers.push(*server),
                    None => continue,
                }
                names.push(name.to_owned());
            }
        }
    }

    fn server(
        &mut self,
        name: &str,
        at: &LocatedValue<'_>,
        writer: ServerSyntax,
        defaults: &Settings,
    ) -> Option<ServerEntry> {
        let table = match writer {
            ServerSyntax::Native => &SERVER,
            ServerSyntax::Client => &CLIENT_SERVER,
        };
        let section = self.section(at, table);
        for field in table.ignored {
            if let Some(at) = section.get(field.name) {
                self.warn(&at.pointer, "this key of a client is ignored");
            }
        }
        if !at.value.is_object() {
            return None;
        }
        let disabled = section.said("disabled").and_then(|at| self.boolean(at));
        if disabled == Some(true) {
            return None;
        }
        let (watch, timeouts) = (&defaults.watch, defaults.timeouts);
        let files = section.said("files").map(|at| self.paths(at));
        let source = self.endpoint(&section, writer);
        let endpoint = match &source {
            Some(ServerAddress::Endpoint(endpoint)) => Some(endpoint.clone()),
            Some(ServerAddress::Files) | None => None,
        };
        // Read even if the endpoint is invalid, so that all mistakes are reported.
        let unreachable = || {
            Endpoint::Url(ServerUrl {
                url: String::new(),
                headers: Vec::new(),
            })
        };
        let mut server = ServerSettings::new(name, endpoint.unwrap_or_else(unreachable));
        server.watch = watch.clone();
        server.timeouts = timeouts;
        self.lifecycle(&section, &mut server);
        if let Some(at) = section.said("watch") {
            server.watch = self.watch(at, watch);
        }
        server.scope = section
            .said("scope")
            .and_then(|at| self.line(at, "a scope"));
        if let Some(at) = section.said("calls") {
            server.calls = self.calls(at);
        }
        if let Some(at) = section.said("trust") {
            server.watch.trust = self.reader.word(at, TRUST).unwrap_or_default();
        }
        if let Some(at) = section.said("tool_defaults") {
            server.tool_defaults = self.tool_rules(at);
        }
        Some(match source? {
            ServerAddress::Endpoint(_) => ServerEntry::Reachable(Box::new(server)),
            ServerAddress::Files => ServerEntry::Files(Box::new(FileServer {
                name: server.name,
                files: files?,
                scope: server.scope,
                watch: server.watch,
            })),
        })
    }

    /// Reads the calls that `watch` makes.
    fn calls(&mut self, at: &LocatedValue<'_>) -> Vec<SampleCall> {
        let items = self.reader.list(at);
        let read = items.iter().filter_map(|item| {
            let section = self.section(item, &CALL);
            let arguments = match section.said("arguments") {
                Some(at) => self.reader.object(at)?.clone(),
                None => Object::new(),
            };
            let tool = section
                .said("tool")
                .and_then(|at| self.line(at, "a tool's name"));
            Some(SampleCall {
                tool: tool?,
                arguments: Value::Object(arguments),
            })
        });
        read.collect()
    }

    fn endpoint(&mut self, section: &Section<'_>, writer: ServerSyntax) -> Option<ServerAddress> {
        let (key, at) = self.exactly_one(section, &SERVER)?;
        let (transport, others): (_, &[_]) = match key {
            "command" => (Some(ClientTransport::Command), &["headers"]),
            "url" => (
                Some(ClientTransport::Url),
                &["args", "env", "cwd", "inherit_env"],
            ),
            _ => (
                None,
                &[
                    "type",
                    "args",
                    "env",
                    "cwd",
                    "inherit_env",
                    "headers",
                    "calls",
                ],
            ),
        };
        if let Some(transport) = transport {
            self.check_type(section, key, transport);
        }
        for other in others {
            let Some(at) = section.said(other) else {
                continue;
            };
            match writer {
                ServerSyntax::Native => {
                    let mistake = DiagnosticKind::ConflictingKeys { one: key, other };
                    self.reader.report(&at.pointer, mistake);
                }
                ServerSyntax::Client => {
                    self.warn(&at.pointer, &format!("ignored because `{key}` is set"));
                }
            }
        }
        let endpoint = match transport {
            Some(ClientTransport::Command) => self.command(section, at, writer)?,
            Some(ClientTransport::Url) => self.remote(section, at)?,
            None => return Some(ServerAddress::Files),
        };
        Some(ServerAddress::Endpoint(endpoint))
    }

    fn check_type(&mut self, section: &Section<'_>, key: &'static str, transport: ClientTransport) {
        let Some(at) = section.said("type") else {
            return;
        };
        if self.reader.word(at, TYPE).is_some_and(|it| it != transport) {
            let word = at.value.as_str().unwrap_or_default().to_owned();
            self.reader
                .report(&at.pointer, SettingsProblem::ServerType { word, key });
        }
    }

    fn command(
        &mut self,
        section: &Section<'_>,
        at: &LocatedValue<'_>,
        writer: ServerSyntax,
    ) -> Option<Endpoint> {
        let program = self.line(at, "a command")?;
        let args = section.said("args").map(|at| {
            let items = self.reader.list(at);
            let args = items.iter().filter_map(|item| self.scalar(item));
            args.collect::<Vec<_>>()
        });
        let env = section.said("env");
        let env = env.map(|at| self.pairs(at, "a variable's name"));
        let env = env.unwrap_or_default();
        let directory = section.said("cwd").and_then(|at| self.path(at));
        let mut command = Command {
            program,
            args: args.clone().unwrap_or_default(),
            env,
            inherit: self.environment(section),
            directory,
            shows_errors: false,
        };
        let shown = self.masked_texts.get(&at.pointer);
        let written = shown.unwrap_or(&command.program);
        // A single line with program and arguments, as in a shell. Clients put only the program into
        // `command`.
        if writer == ServerSyntax::Native && args.is_none() && written.contains(' ') {
            if shown.is_some() {
                let message =
                    "write the arguments under `args`, so that a reference stays one argument";
                self.reader
                    .report(&at.pointer, SettingsProblem::Value { message });
                return None;
            }
            let line = self.valid_endpoint(at, Endpoint::command_line(&command.program))?;
            if let Endpoint::Command(line) = line {
                (command.program, command.args) = (line.program, line.args);
            }
        }
        Some(Endpoint::Command(command))
    }

    /// The environment variables that the program inherits from the gateway.
    fn environment(&mut self, section: &Section<'_>) -> EnvInheritance {
        let names = section.said("inherit_env");
        let names = names.map(|at| self.lines(at, "a variable's name"));
        let names = names.unwrap_or_default();
        if names.iter().any(|name| name == "*") {
            return EnvInheritance::All;
        }
        EnvInheritance::Minimal(names)
    }

    fn remote(&mut self, section: &Section<'_>, at: &LocatedValue<'_>) -> Option<Endpoint> {
        let written = section.said("headers");
        let headers = written.map(|at| self.pairs(at, "a header's name"));
        let url = self.address(at)?;
        let headers = headers.unwrap_or_default();
        let endpoint = Endpoint::Url(ServerUrl { url, headers });
        // The address is valid, so only a header can be invalid.
        let checked = endpoint.validate();
        self.valid_endpoint(written.unwrap_or(at), checked)?;
        Some(endpoint)
    }

    fn valid_endpoint<T>(
        &mut self,
        at: &LocatedValue<'_>,
        read: Result<T, InvalidEndpoint>,
    ) -> Option<T> {
        read.map_err(|invalid| {
            let message = invalid.to_string();
            self.reader
                .report(&at.pointer, SettingsProblem::Unusable { message });
        })
        .ok()
    }

    /// Reads when it is started, how many requests it gets, and what happens when it fails.
    fn lifecycle(&mut self, section: &Section<'_>, server: &mut ServerSettings) {
        if let Some(at) = section.said("start") {
            server.start = self.reader.word(at, START).unwrap_or_default();
        }
        if let Some(at) = section.said("protocol") {
            server.protocol = self.reader.word(at, PROTOCOL).unwrap_or_default();
        }
        if let Some(at) = section.said("sessions") {
            server.sessions = self.reader.word(at, SHARING).unwrap_or_default();
        }
        if let Some(at) = section.said("concurrency") {
            server.concurrency = self.count(at).unwrap_or(server.concurrency);
        }
        if let Some(at) = section.said("principal_concurrency") {
            server.principal_concurrency = self.count(at);
        }
        if let Some(at) = section.said("limits") {
            server.limits = self.server_limits(at);
        }
        if let Some(at) = section.said("max_links") {
            server.max_links = self.count(at).unwrap_or(server.max_links);
        }
        if let Some(at) = section.said("timeouts") {
            server.timeouts = self.timeouts(at, server.timeouts);
        }
        if let Some(at) = section.said("restart") {
            server.restart = self.restart(at);
        }
        if let Some(at) = section.said("breaker") {
            server.breaker = self.breaker(at);
        }
    }

    /// The timeouts, with the given ones replaced.
    pub(super) fn timeouts(&mut self, at: &LocatedValue<'_>, mut timeouts: Timeouts) -> Timeouts {
        let section = self.section(at, &TIMEOUTS);
        let Timeouts {
            connect,
            start,
            request,
            idle,
            list,
        } = &mut timeouts;
        let times = [
            ("connect", connect),
            ("start", start),
            ("request", request),
            ("idle", idle),
            ("list", list),
        ];
        for (key, time) in times {
            if let Some(at) = section.said(key) {
                *time = self.reader.duration(at).unwrap_or(*time);
            }
        }
        timeouts
    }

    fn restart(&mut self, at: &LocatedValue<'_>) -> RestartSettings {
        let section = self.section(at, &RESTART);
        let mut restart = RestartSettings::default();
        if let Some(at) = section.said("first") {
            restart.first = self.reader.duration(at).unwrap_or(restart.first);
        }
        if let Some(at) = section.said("most") {
            restart.max_delay = self.reader.duration(at).unwrap_or(restart.max_delay);
        }
        if restart.max_delay < restart.first {
            let message = "`most` is shorter than `first`";
            self.reader
                .report(&at.pointer, SettingsProblem::Value { message });
        }
        restart
    }

    fn breaker(&mut self, at: &LocatedValue<'_>) -> BreakerSettings {
        let section = self.section(at, &BREAKER);
        let mut breaker = BreakerSettings::default();
        if let Some(at) = section.said("failures") {
            breaker.failures = self.count(at).unwrap_or(breaker.failures);
        }
        if let Some(at) = section.said("pause") {
            breaker.pause = self.reader.duration(at).unwrap_or(breaker.pause);
        }
        breaker
    }
}
