//! Puts a suite to providers, or takes recorded answers for theirs.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use toolwarden_drift::contract::{Origin, Snapshot, Trial, snapshot};
use toolwarden_model::reply::{Failure, Mode};
use toolwarden_probe::{
    FIXTURES, Progress, Provider, Run, Settings, Suite, Target, capture, fixture, offline,
};

use super::ProbeError;
use super::live::{Interrupt, runtime};
use crate::args::{AskArgs, LimitArgs, ModeWord};
use crate::commands::talk::say;
use crate::error::CliError;
use crate::style::{self, visible};

/// The suite of a file, or the bundled one.
pub(super) fn suite(path: Option<&Path>) -> Result<Suite, ProbeError> {
    Ok(match path {
        Some(path) => Suite::load(path)?,
        None => Suite::bundled()?,
    })
}

/// Asks providers, all at once, and tells what could not be measured.
pub(super) fn ask(
    providers: Vec<Provider>,
    suite: &Suite,
    args: &AskArgs,
) -> Result<Vec<Snapshot>, CliError> {
    let targets: Result<Vec<Target>, _> = providers.into_iter().map(target).collect();
    let targets = targets?;
    let mut settings = settings(&args.limits);
    settings.repeat = args.repeat;
    let modes = args.mode.iter().map(|mode| match mode {
        ModeWord::Nonstream => Mode::Nonstream,
        ModeWord::Stream => Mode::Stream,
    });
    settings.modes = Some(modes.collect()).filter(|it: &Vec<Mode>| !it.is_empty());
    let (mut runs, interrupted) = shown_by_a_bar(async |progress, interrupt| {
        let mut interrupted = None;
        let stop = async { interrupted = Some(interrupt.came().await) };
        let runs = toolwarden_probe::run_until(targets, suite, &settings, progress, stop).await;
        Ok((runs, interrupted))
    })?;
    if interrupted.is_some() {
        // A file with nothing in it must not take the place of a whole one.
        runs.retain(|it| !it.exchanges.is_empty());
    }
    if let Some(folder) = &args.limits.capture {
        for path in capture::write(folder, &suite.name, &runs).map_err(ProbeError::Capture)? {
            say(&format!("kept {}", path.display()));
        }
    }
    if let Some(code) = interrupted {
        return Err(CliError::Interrupted { code });
    }
    let at = jiff::Timestamp::now();
    let facts = suite.facts();
    let taken = runs.into_iter().map(|run| {
        tell_failures(&run.provider.name, &run.trials);
        snapshot(origin(&run, Some(format!("{at:.3}"))), &facts, &run.trials)
    });
    Ok(taken.collect())
}

/// A provider with its secrets.
pub(super) fn target(provider: Provider) -> Result<Target, ProbeError> {
    Ok(Target::new(provider, &|name| std::env::var(name).ok())?)
}

pub(super) fn settings(args: &LimitArgs) -> Settings {
    Settings {
        timeout: args.timeout,
        deadline: args.deadline,
        retries: args.retries,
        concurrency: usize::from(args.concurrency),
        max_cost_tokens: args.max_cost_tokens,
        keep_exchanges: args.capture.is_some(),
        ..Settings::default()
    }
}

/// Who is told how far it is.
type Told = Box<dyn Fn(Progress) + Send + Sync>;

/// Runs something that asks providers until it is done or no longer wanted.
pub(super) fn waited_for<W: Future>(work: impl FnOnce(Told) -> W) -> Result<W::Output, CliError> {
    shown_by_a_bar(async |progress, interrupt| {
        tokio::select! {
            code = interrupt.came() => Err(CliError::Interrupted { code }),
            done = work(progress) => Ok(done),
        }
    })
}

/// Runs something that asks providers, with a bar for who watches.
fn shown_by_a_bar<T>(
    work: impl AsyncFnOnce(Told, &mut Interrupt) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let bar = bar();
    let shown = bar.clone();
    let planned = Mutex::new(0_u64);
    let progress = move |step: Progress| match step {
        Progress::Started { trials, .. } => {
            if let Ok(mut planned) = planned.lock() {
                *planned += trials as u64;
                shown.set_length(*planned);
            }
        }
        Progress::Waiting { pause, reason, .. } => {
            shown.set_message(format!("waiting {pause:.0?} ({})", reason.as_str()));
        }
        Progress::Finished { .. } => shown.inc(1),
    };
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let mut interrupt = Interrupt::new()?;
        work(Box::new(progress), &mut interrupt).await
    });
    bar.finish_and_clear();
    done
}

fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("asking {bar:30} {pos}/{len} {elapsed} {msg}");
    let bar = ProgressBar::new(0);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// What a recorded answer says of a provider. It is of no time.
pub(super) fn of_fixture(
    provider: Provider,
    suite: &Suite,
    model: Option<&str>,
    body: &[u8],
) -> Result<Snapshot, ProbeError> {
    let answered: Option<String> = serde_json::from_slice::<Value>(body)
        .ok()
        .and_then(|body| Some(body.get("model")?.as_str()?.to_owned()));
    if let (Some(asked), Some(found)) = (model, &answered)
        && asked != found
    {
        return Err(ProbeError::FixtureModel {
            found: found.clone(),
            asked: asked.to_owned(),
        });
    }
    let provider = provider.with(model.or(answered.as_deref()), None);
    let run = offline(provider, suite, body);
    tell_failures(&run.provider.name, &run.trials);
    Ok(snapshot(origin(&run, None), &suite.facts(), &run.trials))
}

/// The bundled answer of a provider.
pub(super) fn bundled(name: &str) -> Result<&'static [u8], ProbeError> {
    fixture(name).ok_or_else(|| {
        let names: Vec<&str> = FIXTURES.iter().map(|(name, _)| *name).collect();
        ProbeError::NoFixture {
            provider: name.to_owned(),
            known: names.join(", "),
        }
    })
}

fn origin(run: &Run, at: Option<String>) -> Origin {
    Origin {
        provider: run.provider.name.clone(),
        model_id: run.provider.model_id.clone(),
        wire: run.provider.wire,
        at,
    }
}

/// Says what kept trials from being measured: it is no contract, and must not look like one.
fn tell_failures(provider: &str, trials: &[Trial]) {
    let mut failures: BTreeMap<Failure, (usize, &str)> = BTreeMap::new();
    for failed in trials.iter().filter_map(|it| it.outcome.as_ref().err()) {
        let seen = failures
            .entry(failed.failure)
            .or_insert((0, &failed.detail));
        seen.0 += 1;
    }
    let warning = style::WARNING;
    for (failure, (count, detail)) in failures {
        say(&format!(
            "{warning}not measured{warning:#}: {}: {count} of {} trials: {} ({})",
            visible(provider),
            trials.len(),
            visible(detail),
            failure.as_str()
        ));
    }
}
