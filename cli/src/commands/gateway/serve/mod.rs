//! Runs the gateway until a signal stops it.

mod log;
mod reload;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::time::MissedTickBehavior;
use toolwarden_gateway::runtime::RunningGateway;
use toolwarden_settings::{LoadedSettings, PolicySource};

use super::load::{self, LoadedConfig};
use super::process::{self, ProcessSignal, SignalListener, install_reaper};
use crate::args::ServeArgs;
use crate::command_outcome::CommandOutcome;
use crate::error::{CliError, GatewayCommandError};
use log::ServeLog;
use reload::SettingsReloader;

/// How often files and servers are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

pub(in crate::commands) fn run(args: &ServeArgs) -> Result<CommandOutcome, CliError> {
    let read = load::load(args.settings.path(), args.listen)?;
    read.check()?;
    install_reaper();
    process::block_on(Box::pin(serve(args, read)))
}

async fn serve(args: &ServeArgs, read: LoadedConfig) -> Result<CommandOutcome, CliError> {
    let mut log = ServeLog::new(args.log);
    let mut wishes = SignalListener::new()?;
    for warning in read.warnings() {
        log.warn(&warning);
    }
    let mut reloads = SettingsReloader::new(args.settings.path().to_owned(), args.listen, &read);
    let about = summary(&read.settings);
    let masked = read.settings.masked();
    let running = RunningGateway::start(read.settings.settings, read.policy, masked).await;
    let running = Arc::new(running.map_err(GatewayCommandError::Start)?);
    let mut alerts = running.gateway.watch().subscribe_alerts();
    let mut closed = running.gateway.subscribe_closed_sessions();
    let serving = Arc::clone(&running);
    let mut serving = tokio::spawn(async move { serving.serve(serving.router()).await });
    log.log_listening(&url(&running), &about);
    let mut look = tokio::time::interval(POLL_INTERVAL);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            served = &mut serving => {
                let served = served.map_err(|error| CliError::Runtime(error.into()))?;
                while let Ok(session) = closed.try_recv() {
                    log.log_session(&session);
                }
                log.log_end(&running, served.aborted_connections);
                return Ok(CommandOutcome::Pass);
            }
            wish = wishes.next() => match wish {
                ProcessSignal::End(code) if running.shutdown().has_begun() => {
                    return Err(CliError::Interrupted { code });
                }
                ProcessSignal::End(_) => {
                    log.log_shutdown(running.gateway.settings().drain);
                    running.shutdown().begin();
                }
                ProcessSignal::Reload => reloads.reload(&running, &log).await,
            },
            _ = look.tick() => {
                if reloads.is_due().await {
                    reloads.reload(&running, &log).await;
                }
                log.log_health_changes(&running.gateway);
            }
            Some(alert) = next_event(&mut alerts) => log.log_alert(&alert),
            Some(session) = next_event(&mut closed) => log.log_session(&session),
        }
    }
}

/// The next event. Skips events that were missed, and waits forever once the channel is closed.
async fn next_event<T: Clone>(told: &mut Receiver<T>) -> Option<T> {
    loop {
        match told.recv().await {
            Ok(it) => return Some(it),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

fn url(running: &RunningGateway) -> String {
    let tls = running.gateway.settings().listen.tls.is_some();
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://{}/mcp", running.address())
}

/// What is served by which rules, in short.
fn summary(loaded: &LoadedSettings) -> String {
    let servers = match loaded.settings.servers.len() {
        1 => "1 server".to_owned(),
        count => format!("{count} servers"),
    };
    let policy = match &loaded.settings.policy {
        PolicySource::Open => "no policy".to_owned(),
        PolicySource::File(path) => format!("policy {}", path.display()),
        PolicySource::Inline(_) => format!("policy in {}", loaded.path.display()),
    };
    format!("{servers}, {policy}")
}
