//! One agent on standard streams, one server behind it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy as _;
use toolwarden_gateway::runtime::{SingleAgentGateway, load_policy};
use toolwarden_gateway::stdio;
use toolwarden_gateway::upstream::{UpstreamHealth, UpstreamStatus};
use toolwarden_live_guard::LoadedPolicy;
use toolwarden_mcp::{Command, Endpoint, EnvInheritance, ServerUrl};
use toolwarden_settings::{PolicySource, PrefixMode, ServerSettings, Settings, is_server_name};
use toolwarden_watch::inline::WatchAlert;
use toolwarden_watch::server_name;

use super::load::{self, print_warning};
use super::process::{self, ProcessSignal, SignalListener, install_reaper};
use crate::args::WrapArgs;
use crate::command_outcome::CommandOutcome;
use crate::commands::watch::store_path;
use crate::error::{CliError, GatewayCommandError};

pub(in crate::commands) fn run(args: &WrapArgs) -> Result<CommandOutcome, CliError> {
    let settings = settings(args)?;
    let path = args.config.as_deref().unwrap_or(Path::new(""));
    let policy = load_policy(&settings, path).map_err(GatewayCommandError::from)?;
    let principal = args.principal.clone().unwrap_or_else(store_path::user_name);
    install_reaper();
    process::block_on(Box::pin(wrap(settings, policy, principal.into())))
}

async fn wrap(
    settings: Settings,
    policy: LoadedPolicy,
    principal: Arc<str>,
) -> Result<CommandOutcome, CliError> {
    let mut wishes = SignalListener::new()?;
    let store = settings.store.clone();
    let alone = SingleAgentGateway::start(settings, policy).map_err(GatewayCommandError::Start)?;
    let mut alerts = alone.gateway.watch().subscribe_alerts();
    let mut health = alone.gateway.subscribe_health();
    let serving = stdio::serve(
        &alone.gateway,
        &principal,
        tokio::io::stdin(),
        tokio::io::stdout(),
    );
    tokio::pin!(serving);
    let mut has_warned = false;
    let ended = loop {
        tokio::select! {
            served = &mut serving => break served.map_err(GatewayCommandError::Agent),
            // A client that hangs up wants the same as one that terminates.
            ProcessSignal::End(_) | ProcessSignal::Reload = wishes.next() => break Ok(()),
            Ok(alert) = alerts.recv() => print_warning(&alert_text(&alert, &store)),
            Ok(server) = health.recv() => has_warned |= warn_of_failure(&server.status()),
        }
    };
    // The client may be gone before these events were read.
    while let Ok(alert) = alerts.try_recv() {
        print_warning(&alert_text(&alert, &store));
    }
    if !has_warned {
        for server in alone.gateway.upstreams() {
            warn_of_failure(&server.status());
        }
    }
    alone.close().await;
    ended?;
    Ok(CommandOutcome::Pass)
}

/// Warns of a server that does not work; says whether it did.
fn warn_of_failure(status: &UpstreamStatus) -> bool {
    let (UpstreamHealth::Down | UpstreamHealth::Failed, Some(error)) =
        (status.health, &status.last_error)
    else {
        return false;
    };
    print_warning(&error.text);
    true
}

/// What changed, and how to accept it.
fn alert_text(alert: &WatchAlert, store: &Path) -> String {
    let WatchAlert {
        server,
        tool,
        summary,
        ..
    } = alert;
    format!(
        "{tool} of {server} drifted: {} ({summary}); review it with `toolwarden watch approve --store '{}' --server {server}`",
        alert.class.as_str(),
        store.display(),
    )
}

fn settings(args: &WrapArgs) -> Result<Settings, CliError> {
    let mut settings = match &args.config {
        Some(path) => load::load_settings(path)?.settings,
        None => Settings::default(),
    };
    let mut server = server(args, &settings)?;
    if !is_server_name(&server.name) {
        return Err(GatewayCommandError::ServerName { name: server.name }.into());
    }
    if args.config.is_some() && (args.url.is_some() || !args.command.is_empty()) {
        server.watch = settings.watch.clone();
    }
    if let Some(policy) = &args.policy {
        settings.policy = PolicySource::File(policy.clone());
    }
    if let Some(store) = &args.store {
        settings.store.clone_from(store);
    } else if args.config.is_none() {
        settings.store = default_store(&server.name)?;
    }
    settings.servers = vec![server];
    settings.prefix = PrefixMode::Never;
    Ok(settings)
}

/// The server of the command line, or the one of the settings that is meant.
fn server(args: &WrapArgs, settings: &Settings) -> Result<ServerSettings, CliError> {
    if let Some(endpoint) = endpoint(args)? {
        let name = args.name.clone();
        let name = name.unwrap_or_else(|| sanitize_name(&server_name(&endpoint)));
        return Ok(ServerSettings::new(&name, endpoint));
    }
    let Some(path) = args.config.clone() else {
        return Err(GatewayCommandError::NoServer.into());
    };
    let servers = &settings.servers;
    let Some(name) = &args.name else {
        return match servers.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(GatewayCommandError::NoServer.into()),
            _ => Err(GatewayCommandError::SeveralServers { path }.into()),
        };
    };
    let found = servers.iter().find(|it| it.name == *name);
    found.cloned().ok_or_else(|| {
        let known = servers.iter().map(|it| it.name.as_str());
        let unknown = GatewayCommandError::UnknownServer {
            path,
            suggestion: toolwarden_model::did_you_mean(name, known),
            name: name.clone(),
        };
        unknown.into()
    })
}

fn endpoint(args: &WrapArgs) -> Result<Option<Endpoint>, CliError> {
    let endpoint = match (&args.url, args.command.split_first()) {
        (Some(url), _) => Endpoint::Url(ServerUrl {
            url: url.clone(),
            headers: args
                .headers
                .iter()
                .map(|it| header(it))
                .collect::<Result<_, _>>()?,
        }),
        (None, Some((program, arguments))) => Endpoint::Command(Command {
            program: program.clone(),
            args: arguments.to_vec(),
            env: Vec::new(),
            // The client started this process with the environment that is meant for the server.
            inherit: EnvInheritance::All,
            directory: None,
            shows_errors: true,
        }),
        (None, None) => return Ok(None),
    };
    endpoint.validate()?;
    Ok(Some(endpoint))
}

fn header(text: &str) -> Result<(String, String), CliError> {
    let (name, value) = text.split_once(':').ok_or(CliError::Header)?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// A name made of what the name of a server may have.
fn sanitize_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = name
        .chars()
        .map(|c| if fits(c) { c } else { '-' })
        .take(64)
        .collect();
    name.trim_matches('-').to_owned()
}

/// The store of one server, in the user's data directory.
fn default_store(name: &str) -> Result<PathBuf, CliError> {
    let strategy = etcetera::choose_base_strategy().map_err(|_| CliError::NoHome)?;
    let folder = strategy.data_dir().join("toolwarden").join("wrap");
    Ok(folder.join(format!("{name}.db")))
}
