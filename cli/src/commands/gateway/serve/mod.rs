//! Runs the gateway until it is told to end.

mod log;
mod reload;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::time::MissedTickBehavior;
use toolwarden_gateway::runtime::Running;
use toolwarden_warden::settings::{Loaded, PolicySource};

use super::error::GatewayCommandError;
use super::load::{self, Read};
use super::process::{self, Wish, Wishes, install_reaper};
use crate::args::ServeArgs;
use crate::error::CliError;
use crate::output::Verdict;
use log::Log;
use reload::Reloads;

/// How often files and servers are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(in crate::commands) fn run(args: &ServeArgs) -> Result<Verdict, CliError> {
    let read = load::read(&args.settings.config, args.listen)?;
    load::check_build(&read.loaded)?;
    install_reaper();
    process::run(Box::pin(serve(args, read)))
}

async fn serve(args: &ServeArgs, read: Read) -> Result<Verdict, CliError> {
    let mut log = Log::new(args.log);
    let mut wishes = Wishes::new()?;
    for warning in read.warnings() {
        log.warn(&warning);
    }
    let mut reloads = Reloads::new(args.settings.config.clone(), args.listen, &read);
    let about = about(&read.loaded);
    let masked = read.loaded.masked();
    let running = Running::start(read.loaded.settings, read.policy, masked).await;
    let running = Arc::new(running.map_err(GatewayCommandError::Start)?);
    let mut alerts = running.gateway.watch().subscribe_alerts();
    let mut closed = running.gateway.subscribe_closed();
    let serving = Arc::clone(&running);
    let mut serving = tokio::spawn(async move { serving.serve(serving.router()).await });
    log.listening(&url(&running), &about);
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            served = &mut serving => {
                let served = served.map_err(|error| CliError::Runtime(error.into()))?;
                while let Ok(session) = closed.try_recv() {
                    log.session(&session);
                }
                log.ended(&running, served.cut);
                return Ok(Verdict::Fine);
            }
            wish = wishes.next() => match wish {
                Wish::End(code) if running.shutdown().has_begun() => {
                    return Err(CliError::Interrupted { code });
                }
                Wish::End(_) => {
                    log.ending(running.gateway.settings().drain);
                    running.shutdown().begin();
                }
                Wish::Reload => reloads.reload(&running, &log).await,
            },
            _ = look.tick() => {
                if reloads.is_due().await {
                    reloads.reload(&running, &log).await;
                }
                log.health(&running.gateway);
            }
            Some(alert) = heard(&mut alerts) => log.alert(&alert),
            Some(session) = heard(&mut closed) => log.session(&session),
        }
    }
}

/// The next that is told; none where some were missed.
async fn heard<T: Clone>(told: &mut Receiver<T>) -> Option<T> {
    loop {
        match told.recv().await {
            Ok(it) => return Some(it),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

fn url(running: &Running) -> String {
    let tls = running.gateway.settings().listen.tls.is_some();
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://{}/mcp", running.address())
}

/// What is served by which rules, in short.
fn about(loaded: &Loaded) -> String {
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
