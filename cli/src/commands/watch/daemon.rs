//! Checks servers repeatedly, each on its own schedule.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use toolwarden_drift::shape::ValueKey;
use toolwarden_drift::{Options, ToolDrift};
use toolwarden_mcp::McpError;
use toolwarden_model::Verdict;
use toolwarden_settings::Settings;
use toolwarden_store::{AlertNovelty, ServerKey, Store, StoreError};
use toolwarden_watch::{
    CheckOutcome, Pins, PinsError, RecordOptions, RecordOutcome, Schedule, UNKNOWN_VERSION,
    WatchConfig, add_recent_results, check, summary_line,
};

use super::comparison::{CHECK_FAILS_ON, fails};
use super::live_servers::{Interrupt, LiveAnswer, query_server, runtime};
use super::observe::{ObservedServer, observe};
use super::sources::{SourceKind, WatchSource, load_servers};
use super::store_path;
use crate::args::{ApprovalArgs, DaemonArgs, PlainFormat, SourceArgs, StoreArgs};
use crate::ci_escape::escape_json;
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::print_status;
use crate::error::CliError;
use crate::output::print_text;
use crate::style::{self, escape_controls};

type QueryResult = (usize, Result<Option<LiveAnswer>, McpError>);

pub(super) fn run(args: &DaemonArgs) -> Result<CommandOutcome, CliError> {
    let given = args.file.as_ref().or(args.kept.config.as_ref());
    let path = given.map_or(Path::new(Settings::FILE), PathBuf::as_path);
    let config = load_servers(path)?;
    let store = store_path::open_store(&StoreArgs {
        store: args.kept.store.clone(),
        config: Some(path.to_owned()),
    })?;
    let key = ValueKey::new(store.value_key()?);
    let daemon = Daemon {
        store: &store,
        key: &key,
        format: args.format,
    };
    runtime()?.block_on(daemon.watch(config, args.once))
}

struct Daemon<'d> {
    store: &'d Store,
    key: &'d ValueKey,
    format: PlainFormat,
}

/// A server and when it is due.
struct ScheduledServer {
    source: WatchSource,
    schedule: Schedule,
    due: Option<Instant>,
}

impl Daemon<'_> {
    async fn watch(&self, config: WatchConfig, once: bool) -> Result<CommandOutcome, CliError> {
        let mut interrupt = Interrupt::new()?;
        print_status(&describe_schedule(&config));
        let mut servers = scheduled_servers(config, once);
        let mut asked: JoinSet<QueryResult> = JoinSet::new();
        let (mut found, mut unanswered) = (false, false);
        loop {
            let now = Instant::now();
            for (index, watched) in servers.iter_mut().enumerate() {
                if watched.due.is_some_and(|due| due <= now) {
                    watched.due = None;
                    spawn_query(&mut asked, index, &watched.source);
                }
            }
            let next = servers.iter().filter_map(|it| it.due).min();
            if asked.is_empty() && next.is_none() {
                break;
            }
            let wait = tokio::time::sleep_until(next.unwrap_or(now + Duration::from_secs(3600)));
            tokio::select! {
                code = interrupt.wait() => {
                    asked.shutdown().await;
                    if once {
                        return Err(CliError::Interrupted { code });
                    }
                    print_status("stopping");
                    break;
                }
                Some(done) = asked.join_next(), if !asked.is_empty() => {
                    let (index, answer) = done.map_err(|error| CliError::Runtime(error.into()))?;
                    let Some(watched) = servers.get_mut(index) else { continue };
                    match self.handle_answer(watched, answer)? {
                        Some(drifted) => found |= drifted,
                        None => unanswered = true,
                    }
                    let wait = watched.schedule.next_delay(jitter());
                    watched.due = (!once).then(|| Instant::now() + wait);
                }
                () = wait, if next.is_some() => {}
            }
        }
        // Servers that were started end with the tasks that started them.
        asked.shutdown().await;
        if !once {
            return Ok(CommandOutcome::Pass);
        }
        print_status(match (found, unanswered) {
            (true, _) => "drift found: `toolwarden watch alerts` shows it",
            (false, true) => "a server did not answer",
            (false, false) => "no drift",
        });
        Ok(Verdict::new(found, !unanswered).into())
    }

    /// Handles an answer. Returns whether anything drifted, or none if there was no answer.
    fn handle_answer(
        &self,
        watched: &mut ScheduledServer,
        answer: Result<Option<LiveAnswer>, McpError>,
    ) -> Result<Option<bool>, CliError> {
        let checked = match answer {
            Ok(answer) => self.check(&watched.source, answer),
            Err(error) => Err(watched.source.live_error(error)),
        };
        let key = &watched.source.key;
        match checked {
            Ok((judged, recorded)) => {
                if watched.schedule.failures() > 0 {
                    self.print_result(key, "recovered", None, "answers again")?;
                }
                watched.schedule.record_success();
                self.report(key, &judged, &recorded)?;
                let grave = |it: &ToolDrift| fails(&CHECK_FAILS_ON, it);
                let told =
                    |it: &&ToolDrift| recorded.alerts.iter().any(|alert| alert.tool == it.tool());
                Ok(Some(judged.drift.tools.iter().filter(told).any(grave)))
            }
            // Others may keep the store busy for a while.
            Err(
                error @ (CliError::Store(StoreError::Busy { .. })
                | CliError::Pins(PinsError::Store(StoreError::Busy { .. }))),
            ) => {
                self.print_result(key, "unanswered", None, &error.to_string())?;
                Ok(None)
            }
            // A store that cannot be written is not the server's fault.
            Err(error @ (CliError::Store(_) | CliError::Pins(_) | CliError::Write { .. })) => {
                Err(error)
            }
            Err(error) => {
                watched.schedule.record_failure();
                let wait = watched.schedule.next_delay(0.5).as_secs();
                let error = error.to_string().lines().collect::<Vec<_>>().join(" / ");
                let told = format!("{error}; next try in about {wait} s");
                self.print_result(key, "unanswered", None, &told)?;
                Ok(None)
            }
        }
    }

    fn check(
        &self,
        source: &WatchSource,
        answer: Option<LiveAnswer>,
    ) -> Result<(CheckOutcome, RecordOutcome), CliError> {
        let pins = Pins::from_store(self.store, &source.key)?;
        let args = SourceArgs::default();
        let mut look = observe(source, answer, &args, Some(&pins), self.key)?;
        retain_requested(source, &mut look);
        if !pins.known {
            look.refuse_duplicates(source)?;
        }
        let now = store_path::now();
        let results = &mut look.listing.results;
        add_recent_results(self.store, &pins, results, source.pooling, now)?;
        let mut approval = store_path::approval(&ApprovalArgs::default());
        approval.at = now;
        let recording = RecordOptions {
            approval: &approval,
            version: UNKNOWN_VERSION,
            seal: source.tools.is_empty(),
            alert_on: &source.alert_on,
            alert_on_equivalent: false,
            wanted: &source.tools,
        };
        let (judged, recorded) = check(
            self.store,
            &source.key,
            &mut look.listing,
            &Options::default(),
            &[],
            &recording,
        )?;
        if let Some(server) = &pins.server {
            for tool in &judged.first_results {
                self.store.delete_observed_shapes(server.id, tool)?;
            }
        }
        Ok((judged, recorded))
    }

    fn report(
        &self,
        key: &ServerKey,
        judged: &CheckOutcome,
        recorded: &RecordOutcome,
    ) -> Result<(), CliError> {
        if !recorded.registered.is_empty() {
            let told = format!(
                "{} tools pinned for the first time",
                recorded.registered.len()
            );
            self.print_result(key, "registered", None, &told)?;
        }
        for tool in &judged.first_results {
            self.print_result(
                key,
                "learned",
                None,
                &format!("the shape of the results of `{tool}` is pinned"),
            )?;
        }
        for alert in recorded
            .alerts
            .iter()
            .filter(|it| it.raised == AlertNovelty::New)
        {
            let mut drifted = judged.drift.tools.iter();
            let drift = drifted.find(|it| it.tool() == alert.tool);
            if let Some(drift) = drift {
                self.print_result(key, "drift", Some((drift, &alert.id)), &summary_line(drift))?;
            }
        }
        Ok(())
    }

    fn print_result(
        &self,
        key: &ServerKey,
        event: &str,
        drift: Option<(&ToolDrift, &String)>,
        message: &str,
    ) -> Result<(), CliError> {
        let at = store_path::now();
        if self.format == PlainFormat::Json {
            let mut entry = json!({"schema": "toolwarden/watch/event/v1", "at": format!("{at:.3}"),
                "event": event, "server": key.name, "scope": key.scope, "message": message});
            if let (Some((drift, id)), Some(members)) = (drift, entry.as_object_mut()) {
                members.insert("alert".to_owned(), json!(id));
                members.insert(
                    "drift".to_owned(),
                    toolwarden_drift::drift_json::tool(drift),
                );
            }
            return print_text(&(escape_json(entry.to_string()) + "\n"));
        }
        let (dim, colour) = (
            style::DIM,
            if drift.is_some() {
                style::ERROR
            } else {
                style::LOCATION
            },
        );
        let subject = match drift {
            Some((drift, id)) => format!(
                " {} {} {dim}alert {id}{dim:#}",
                escape_controls(drift.tool()),
                drift.class().as_str()
            ),
            None => String::new(),
        };
        print_text(&format!(
            "{dim}{at:.0}{dim:#} {colour}{event}{colour:#} {}{subject}: {}\n",
            escape_controls(&key.name),
            escape_controls(message)
        ))
    }
}

/// The servers, each due at its own time.
fn scheduled_servers(config: WatchConfig, once: bool) -> Vec<ScheduledServer> {
    let now = Instant::now();
    let servers = config.servers.into_iter();
    servers
        .map(|(name, server)| {
            let schedule = Schedule::new(server.check_interval);
            let first = if once {
                Duration::ZERO
            } else {
                schedule.first(jitter())
            };
            ScheduledServer {
                source: WatchSource::configured(&name, server),
                schedule,
                due: Some(now + first),
            }
        })
        .collect()
}

fn describe_schedule(config: &WatchConfig) -> String {
    let intervals = config.servers.values().map(|it| it.check_interval);
    let intervals: BTreeSet<Duration> = intervals.collect();
    let count = config.servers.len();
    let servers = if count == 1 { "server" } else { "servers" };
    match (intervals.first(), intervals.last()) {
        (Some(first), Some(last)) if first != last => format!(
            "watching {count} {servers} every {} to {} s",
            first.as_secs(),
            last.as_secs()
        ),
        (first, _) => {
            let seconds = first.map_or(0, Duration::as_secs);
            format!("watching {count} {servers} every {seconds} s")
        }
    }
}

fn retain_requested(source: &WatchSource, look: &mut ObservedServer) {
    let tools = &source.tools;
    if !tools.is_empty() {
        look.listing
            .observed
            .retain(|seen| tools.contains(&seen.name));
        look.listing.unchanged.retain(|name| tools.contains(name));
    }
}

fn spawn_query(asked: &mut JoinSet<QueryResult>, index: usize, source: &WatchSource) {
    let SourceKind::Live(endpoint) = &source.kind else {
        asked.spawn(async move { (index, Ok(None)) });
        return;
    };
    let (endpoint, timeout, calls) = (endpoint.clone(), source.timeout, source.calls.clone());
    asked.spawn(async move {
        let answer = query_server(&endpoint, timeout, &calls).await;
        (index, answer.map(Some))
    });
}

/// A number from 0 to 1; where there is no randomness, checks are not spread.
fn jitter() -> f64 {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}
