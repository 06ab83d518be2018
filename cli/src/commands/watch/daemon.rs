//! Checks servers again and again, each at its own time.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use toolwarden_drift::shape::ValueKey;
use toolwarden_drift::{Options, ToolDrift};
use toolwarden_mcp::McpError;
use toolwarden_store::{Raised, ServerKey, Store, StoreError};
use toolwarden_warden::{
    Gathering, Judged, Pins, PinsError, Reached, Recorded, Recording, Schedule, UNKNOWN_VERSION,
    WatchConfig, WatchedServer, check, first_words, pool,
};

use super::comparison::{CHECK_FAILS_ON, fails};
use super::keep;
use super::live::{Answer, Interrupt, ask_one, runtime};
use super::look::{Look, look};
use super::sources::{From, Source, config};
use crate::args::{ApprovalArgs, DaemonArgs, PlainFormat, SourceArgs};
use crate::ci_escape::in_json;
use crate::commands::talk::say;
use crate::error::CliError;
use crate::output::{Verdict, print};
use crate::style::{self, visible};

type Asked = (usize, Result<Option<Answer>, McpError>);

pub(super) fn run(args: &DaemonArgs) -> Result<Verdict, CliError> {
    let config = config(&args.config)?;
    let store = keep::store(args.kept.store.as_ref())?;
    let key = ValueKey::new(store.value_key()?);
    let daemon = Daemon {
        config: &config,
        store: &store,
        key: &key,
        format: args.format,
    };
    runtime()?.block_on(daemon.watch(args.once))
}

struct Daemon<'d> {
    config: &'d WatchConfig,
    store: &'d Store,
    key: &'d ValueKey,
    format: PlainFormat,
}

/// A server and when it is due.
struct Watched {
    source: Source,
    schedule: Schedule,
    due: Option<Instant>,
}

impl Daemon<'_> {
    async fn watch(&self, once: bool) -> Result<Verdict, CliError> {
        let mut interrupt = Interrupt::new()?;
        let mut servers: Vec<Watched> = self.servers(once);
        let mut asked: JoinSet<Asked> = JoinSet::new();
        let (mut found, mut unanswered) = (false, false);
        say(&format!(
            "watching {} servers every {} s",
            servers.len(),
            self.config.check_interval.as_secs()
        ));
        loop {
            let now = Instant::now();
            for (index, watched) in servers.iter_mut().enumerate() {
                if watched.due.is_some_and(|due| due <= now) {
                    watched.due = None;
                    ask(&mut asked, index, &watched.source);
                }
            }
            let next = servers.iter().filter_map(|it| it.due).min();
            if asked.is_empty() && next.is_none() {
                break;
            }
            let wait = tokio::time::sleep_until(next.unwrap_or(now + Duration::from_secs(3600)));
            tokio::select! {
                code = interrupt.came() => {
                    asked.shutdown().await;
                    if once {
                        return Err(CliError::Interrupted { code });
                    }
                    say("stopping");
                    break;
                }
                Some(done) = asked.join_next(), if !asked.is_empty() => {
                    let (index, answer) = done.map_err(|error| CliError::Runtime(error.into()))?;
                    let Some(watched) = servers.get_mut(index) else { continue };
                    match self.answered(watched, answer)? {
                        Some(drifted) => found |= drifted,
                        None => unanswered = true,
                    }
                    let wait = watched.schedule.wait(chance());
                    watched.due = (!once).then(|| Instant::now() + wait);
                }
                () = wait, if next.is_some() => {}
            }
        }
        // Servers that were started end with the tasks that started them.
        asked.shutdown().await;
        Ok(match (once, found, unanswered) {
            (true, true, _) => Verdict::Finding,
            (true, false, true) => Verdict::NotMeasured,
            _ => Verdict::Fine,
        })
    }

    fn servers(&self, once: bool) -> Vec<Watched> {
        let now = Instant::now();
        let servers = self.config.servers.iter();
        servers
            .map(|(name, server)| {
                let schedule = Schedule::new(self.config.check_interval);
                let first = if once {
                    Duration::ZERO
                } else {
                    schedule.first(chance())
                };
                Watched {
                    source: source(name, server),
                    schedule,
                    due: Some(now + first),
                }
            })
            .collect()
    }

    /// Takes in an answer; tells whether anything drifted, or nothing if there was no answer.
    fn answered(
        &self,
        watched: &mut Watched,
        answer: Result<Option<Answer>, McpError>,
    ) -> Result<Option<bool>, CliError> {
        let checked = match answer {
            Ok(answer) => self.check(&watched.source, answer),
            Err(error) => Err(CliError::live(&watched.source, error)),
        };
        let key = &watched.source.key;
        match checked {
            Ok((judged, recorded)) => {
                if watched.schedule.failures() > 0 {
                    self.tell(key, "recovered", None, "answers again")?;
                }
                watched.schedule.answered();
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
                self.tell(key, "unanswered", None, &error.to_string())?;
                Ok(None)
            }
            // A store that cannot be written is no fault of the server.
            Err(error @ (CliError::Store(_) | CliError::Pins(_) | CliError::Write { .. })) => {
                Err(error)
            }
            Err(error) => {
                watched.schedule.failed();
                let wait = watched.schedule.wait(0.5).as_secs();
                let error = error.to_string().lines().collect::<Vec<_>>().join(" / ");
                let told = format!("{error}; next try in about {wait} s");
                self.tell(key, "unanswered", None, &told)?;
                Ok(None)
            }
        }
    }

    fn check(
        &self,
        source: &Source,
        answer: Option<Answer>,
    ) -> Result<(Judged, Recorded), CliError> {
        let pins = Pins::of_store(self.store, &source.key)?;
        let args = SourceArgs::default();
        let mut look = look(source, answer, &args, Some(&pins), self.key)?;
        self.only_wanted(&mut look);
        if !pins.known {
            look.refuse_doubled(source)?;
        }
        let now = keep::now();
        let gathering = Gathering {
            learn_results: self.config.learn_results,
            window: self.config.window,
        };
        pool(self.store, &pins, &mut look.listing.results, gathering, now)?;
        let mut approval = keep::approval(&ApprovalArgs::default());
        approval.at = now;
        let recording = Recording {
            approval: &approval,
            version: UNKNOWN_VERSION,
            seal: self.config.tools.is_empty(),
            alert_on: &self.config.alert_on,
            alert_on_equivalent: false,
            wanted: &self.config.tools,
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
            for tool in &judged.learned {
                self.store.drop_observed_shapes(server.id, tool)?;
            }
        }
        Ok((judged, recorded))
    }

    fn only_wanted(&self, look: &mut Look) {
        let tools = &self.config.tools;
        if !tools.is_empty() {
            look.listing
                .observed
                .retain(|seen| tools.contains(&seen.name));
            look.listing.unchanged.retain(|name| tools.contains(name));
        }
    }

    fn report(
        &self,
        key: &ServerKey,
        judged: &Judged,
        recorded: &Recorded,
    ) -> Result<(), CliError> {
        if !recorded.registered.is_empty() {
            let told = format!(
                "{} tools pinned for the first time",
                recorded.registered.len()
            );
            self.tell(key, "registered", None, &told)?;
        }
        for tool in &judged.learned {
            self.tell(
                key,
                "learned",
                None,
                &format!("the shape of the results of `{tool}` is pinned"),
            )?;
        }
        for alert in recorded
            .alerts
            .iter()
            .filter(|it| it.raised == Raised::First)
        {
            let mut drifted = judged.drift.tools.iter();
            let drift = drifted.find(|it| it.tool() == alert.tool);
            if let Some(drift) = drift {
                self.tell(key, "drift", Some((drift, &alert.id)), &first_words(drift))?;
            }
        }
        Ok(())
    }

    fn tell(
        &self,
        key: &ServerKey,
        event: &str,
        drift: Option<(&ToolDrift, &String)>,
        message: &str,
    ) -> Result<(), CliError> {
        let at = keep::now();
        if self.format == PlainFormat::Json {
            let mut entry = json!({"schema": "toolwarden/watch/event/v1", "at": format!("{at:.3}"),
                "event": event, "server": key.name, "scope": key.scope, "message": message});
            if let (Some((drift, id)), Some(members)) = (drift, entry.as_object_mut()) {
                members.insert("alert".to_owned(), json!(id));
                members.insert("drift".to_owned(), toolwarden_drift::document::tool(drift));
            }
            return print(&(in_json(entry.to_string()) + "\n"));
        }
        let (dim, colour) = (
            style::DIM,
            if drift.is_some() {
                style::ERROR
            } else {
                style::PLACE
            },
        );
        let subject = match drift {
            Some((drift, id)) => format!(
                " {} {} {dim}alert {id}{dim:#}",
                visible(drift.tool()),
                drift.class().as_str()
            ),
            None => String::new(),
        };
        print(&format!(
            "{dim}{at:.0}{dim:#} {colour}{event}{colour:#} {}{subject}: {}\n",
            visible(&key.name),
            visible(message)
        ))
    }
}

fn source(name: &str, server: &WatchedServer) -> Source {
    Source {
        key: ServerKey {
            name: name.to_owned(),
            scope: server.scope.clone(),
        },
        from: match &server.reached {
            Reached::Live(endpoint) => From::Live(endpoint.clone()),
            Reached::Files(files) => From::Files(files.clone()),
        },
        whole: true,
        calls: server.calls.clone(),
        timeout: server.timeout,
        tools: Vec::new(),
        alert_on: Vec::new(),
    }
}

fn ask(asked: &mut JoinSet<Asked>, index: usize, source: &Source) {
    let From::Live(endpoint) = &source.from else {
        asked.spawn(async move { (index, Ok(None)) });
        return;
    };
    let (endpoint, timeout, calls) = (endpoint.clone(), source.timeout, source.calls.clone());
    asked.spawn(async move {
        let answer = ask_one(&endpoint, timeout, &calls).await;
        (index, answer.map(Some))
    });
}

/// A number from 0 to 1; where there is no randomness, checks are not spread.
fn chance() -> f64 {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}
