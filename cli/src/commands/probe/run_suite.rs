//! Puts a suite to providers, or takes recorded answers for theirs.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use toolwarden_model::reply::{StreamMode, TrialFailure};
use toolwarden_probe::{
    FIXTURES, ProbeSuite, ProbeTarget, Provider, RunProgress, RunSettings, SuiteRun, capture,
    fixture, run_fixture,
};
use toolwarden_trials::{Snapshot, Trial, TrialOrigin, build_snapshot};

use super::live_servers::{Interrupt, runtime};
use crate::args::{AskArgs, LimitArgs, ModeArg};
use crate::commands::progress::print_status;
use crate::error::{CliError, ProbeError};
use crate::style::{self, escape_controls};

/// The suite of a file, or the bundled one.
pub(super) fn load_suite(path: Option<&Path>) -> Result<ProbeSuite, ProbeError> {
    Ok(match path {
        Some(path) => ProbeSuite::load(path)?,
        None => ProbeSuite::bundled()?,
    })
}

/// Asks providers, all at once, and tells what could not be measured.
pub(super) fn run_providers(
    providers: Vec<Provider>,
    suite: &ProbeSuite,
    args: &AskArgs,
) -> Result<Vec<Snapshot>, CliError> {
    let mut runs = ProviderRuns::new(providers)?;
    runs.run(suite, args, args.repeat)?;
    Ok(runs.finish(suite))
}

/// Runs of a suite against providers that can be continued.
pub(super) struct ProviderRuns {
    targets: Vec<ProbeTarget>,
    runs: Vec<SuiteRun>,
    begun: Instant,
    /// How often every case ran.
    repetitions: u32,
}

impl ProviderRuns {
    pub(super) fn new(providers: Vec<Provider>) -> Result<Self, ProbeError> {
        let targets: Result<Vec<ProbeTarget>, _> = providers.into_iter().map(load_target).collect();
        Ok(Self {
            targets: targets?,
            runs: Vec::new(),
            begun: Instant::now(),
            repetitions: 0,
        })
    }

    /// Runs every case this many times more.
    pub(super) fn run(
        &mut self,
        suite: &ProbeSuite,
        args: &AskArgs,
        repeat: Option<NonZeroU32>,
    ) -> Result<(), CliError> {
        let settings = self.settings(args, repeat);
        let targets = self.targets.clone();
        let (mut runs, interrupted) = with_progress_bar(async |progress, interrupt| {
            let mut interrupted = None;
            let stop = async { interrupted = Some(interrupt.wait().await) };
            let runs =
                toolwarden_probe::run_suite_until(targets, suite, &settings, progress, stop).await;
            Ok((runs, interrupted))
        })?;
        if self.runs.is_empty() {
            self.runs.append(&mut runs);
        }
        for (run, more) in self.runs.iter_mut().zip(runs) {
            run.extend(more, suite);
        }
        let repeat = repeat.unwrap_or(suite.sampling.repeat);
        self.repetitions = self.repetitions.saturating_add(repeat.get());
        if interrupted.is_some() {
            // A file with nothing in it must not take the place of a whole one.
            self.runs.retain(|it| !it.exchanges.is_empty());
        }
        if let Some(folder) = &args.limits.capture {
            let written = capture::write(folder, &suite.name, &self.runs);
            for path in written.map_err(ProbeError::Capture)? {
                print_status(&format!("kept {}", path.display()));
            }
        }
        match interrupted {
            Some(code) => Err(CliError::Interrupted { code }),
            None => Ok(()),
        }
    }

    /// Whether a limit of the whole run leaves nothing for more trials.
    pub(super) fn is_exhausted(&self, args: &AskArgs) -> bool {
        let limits = &args.limits;
        let late = limits.deadline.is_some_and(|it| self.begun.elapsed() >= it);
        late || limits.max_cost_tokens.is_some_and(|it| self.tokens() >= it)
    }

    /// The settings of the next run: what is left of the limits of all.
    fn settings(&self, args: &AskArgs, repeat: Option<NonZeroU32>) -> RunSettings {
        let mut settings = run_settings(&args.limits);
        settings.repeat = repeat;
        settings.first_repetition = self.repetitions;
        if self.repetitions > 0 {
            let spent = self.begun.elapsed();
            settings.deadline = settings.deadline.map(|it| it.saturating_sub(spent));
            let tokens = self.tokens();
            let left = |it: u64| it.saturating_sub(tokens);
            settings.max_cost_tokens = settings.max_cost_tokens.map(left);
        }
        let modes = args.mode.iter().map(|mode| match mode {
            ModeArg::Nonstream => StreamMode::Nonstream,
            ModeArg::Stream => StreamMode::Stream,
        });
        settings.modes = Some(modes.collect()).filter(|it: &Vec<StreamMode>| !it.is_empty());
        settings
    }

    /// The tokens of the provider that took the most.
    fn tokens(&self) -> u64 {
        self.runs.iter().map(SuiteRun::tokens).max().unwrap_or(0)
    }

    pub(super) fn snapshots(&self, suite: &ProbeSuite) -> Vec<Snapshot> {
        let at = jiff::Timestamp::now();
        let facts = suite.facts();
        let taken = self
            .runs
            .iter()
            .map(|run| build_snapshot(origin(run, Some(format!("{at:.3}"))), &facts, &run.trials));
        taken.collect()
    }

    /// The snapshots, and what was not measured on standard error.
    pub(super) fn finish(&self, suite: &ProbeSuite) -> Vec<Snapshot> {
        for run in &self.runs {
            print_failures(&run.provider.name, &run.trials);
        }
        self.snapshots(suite)
    }
}

/// The providers whose keys are set, and the others with the reason.
pub(super) fn providers_with_keys(
    providers: Vec<Provider>,
) -> (Vec<Provider>, Vec<(String, ProbeError)>) {
    let (mut usable, mut left_out) = (Vec::new(), Vec::new());
    for provider in providers {
        match load_target(provider.clone()) {
            Ok(_) => usable.push(provider),
            Err(error) => left_out.push((provider.name, error)),
        }
    }
    (usable, left_out)
}

/// A provider with its secrets.
pub(super) fn load_target(provider: Provider) -> Result<ProbeTarget, ProbeError> {
    Ok(ProbeTarget::new(provider, &|name| {
        std::env::var(name).ok()
    })?)
}

pub(super) fn run_settings(args: &LimitArgs) -> RunSettings {
    RunSettings {
        timeout: args.timeout,
        deadline: args.deadline,
        retries: args.retries,
        concurrency: usize::from(args.concurrency),
        max_cost_tokens: args.max_cost_tokens,
        keep_exchanges: args.capture.is_some(),
        ..RunSettings::default()
    }
}

/// Receives the progress of a run.
type ProgressCallback = Box<dyn Fn(RunProgress) + Send + Sync>;

/// Runs something that asks providers until it is done or no longer wanted.
pub(super) fn run_interruptible<W: Future>(
    work: impl FnOnce(ProgressCallback) -> W,
) -> Result<W::Output, CliError> {
    with_progress_bar(async |progress, interrupt| {
        tokio::select! {
            code = interrupt.wait() => Err(CliError::Interrupted { code }),
            done = work(progress) => Ok(done),
        }
    })
}

/// Runs something that asks providers, with a bar for who watches.
fn with_progress_bar<T>(
    work: impl AsyncFnOnce(ProgressCallback, &mut Interrupt) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let bar = progress_bar();
    let shown = bar.clone();
    let planned = Mutex::new(0_u64);
    let progress = move |step: RunProgress| match step {
        RunProgress::Started { trials, .. } => {
            if let Ok(mut planned) = planned.lock() {
                *planned += trials as u64;
                shown.set_length(*planned);
            }
        }
        RunProgress::Retrying { pause, reason, .. } => {
            shown.set_message(format!("waiting {pause:.0?} ({})", reason.as_str()));
        }
        RunProgress::Finished { .. } => shown.inc(1),
    };
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let mut interrupt = Interrupt::new()?;
        work(Box::new(progress), &mut interrupt).await
    });
    bar.finish_and_clear();
    // A name that is still being resolved, or a reply that is still being read, must not delay the end.
    runtime.shutdown_background();
    done
}

fn progress_bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("asking {bar:30} {pos}/{len} {elapsed} {msg}");
    let bar = ProgressBar::new(0);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// What a recorded answer says of a provider. It is of no time.
pub(super) fn snapshot_from_fixture(
    provider: Provider,
    suite: &ProbeSuite,
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
    let provider = provider.with_overrides(model.or(answered.as_deref()), None);
    let run = run_fixture(provider, suite, body);
    print_failures(&run.provider.name, &run.trials);
    Ok(build_snapshot(
        origin(&run, None),
        &suite.facts(),
        &run.trials,
    ))
}

/// The bundled answer of a provider.
pub(super) fn bundled_fixture(name: &str) -> Result<&'static [u8], ProbeError> {
    fixture(name).ok_or_else(|| {
        let names: Vec<&str> = FIXTURES.iter().map(|(name, _)| *name).collect();
        ProbeError::NoFixture {
            provider: name.to_owned(),
            known: names.join(", "),
        }
    })
}

fn origin(run: &SuiteRun, at: Option<String>) -> TrialOrigin {
    TrialOrigin {
        provider: run.provider.name.clone(),
        model_id: run.provider.model_id.clone(),
        wire: run.provider.wire,
        at,
    }
}

/// Says what kept trials from being measured: a failure is not a contract, and must not look like one.
fn print_failures(provider: &str, trials: &[Trial]) {
    let mut failures: BTreeMap<TrialFailure, (usize, &str)> = BTreeMap::new();
    for failed in trials.iter().filter_map(|it| it.outcome.as_ref().err()) {
        let seen = failures
            .entry(failed.failure)
            .or_insert((0, &failed.detail));
        seen.0 += 1;
    }
    let warning = style::WARNING;
    for (failure, (count, detail)) in failures {
        print_status(&format!(
            "{warning}not measured{warning:#}: {}: {count} of {} trials: {} ({})",
            escape_controls(provider),
            trials.len(),
            escape_controls(detail),
            failure.as_str()
        ));
    }
}
