use std::num::{NonZeroU8, NonZeroU32};

use toolwarden_model::{Verdict, did_you_mean};
use toolwarden_probe::{ContractFile, ProbeSuite, Provider};
use toolwarden_trials::{
    FaultLimits, PinnedContract, PinnedToolContract, Snapshot, VersionedSnapshot,
};

use super::comparison::{self, ProbeComparison};
use super::snapshot::all_measured;
use super::{report, run_suite};
use crate::args::{JudgeArgs, ProbeRunArgs};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::print_status;
use crate::error::{CliError, ProbeError};

pub(super) fn run(args: &ProbeRunArgs) -> Result<CommandOutcome, CliError> {
    let RunPlan {
        providers,
        suite,
        pins,
    } = match &args.contract {
        Some(path) => {
            providers_from_contract(args, &ContractFile::load(path).map_err(ProbeError::File)?)?
        }
        None => RunPlan {
            providers: providers_from_options(args)?,
            suite: run_suite::load_suite(args.ask.suite.as_deref())?,
            pins: None,
        },
    };
    if providers.len() < 2 && !pins.as_ref().is_some_and(ContractPins::is_any) {
        return Err(ProbeError::NothingToCompare.into());
    }
    let mut judge = args.judge.clone();
    let taken = if args.until_decided {
        let looks = looks(args, &suite);
        judge.looks = u8::try_from(looks.len()).ok().and_then(NonZeroU8::new);
        run_until_decided(providers, &suite, &looks, (args, &judge))?
    } else if args.from_fixtures {
        let models = [&args.old_model, &args.new_model].map(|it| it.as_deref());
        // A contract has no such options, and hence no such models.
        let models = models.into_iter().chain(std::iter::repeat(None));
        let taken: Result<Vec<Snapshot>, ProbeError> = providers
            .into_iter()
            .zip(models)
            .map(|(provider, model)| {
                let body = run_suite::bundled_fixture(&provider.name)?;
                run_suite::snapshot_from_fixture(provider, &suite, model, body)
            })
            .collect();
        taken?
    } else {
        run_suite::run_providers(providers, &suite, &args.ask)?
    };
    let compared = compare_all(&taken, pins.as_ref(), &judge)?;
    let place = args.contract.as_ref().or(args.ask.suite.as_ref());
    let place = place.map_or_else(|| suite.name.clone(), |it| it.display().to_string());
    report::print_comparisons(&compared, &taken, &place, &args.judge)?;
    let measured = taken.iter().all(all_measured);
    Ok(comparison::overall_verdict(&compared, &args.judge, measured).into())
}

/// What a run asks and compares.
struct RunPlan {
    providers: Vec<Provider>,
    suite: ProbeSuite,
    pins: Option<ContractPins>,
}

/// What a contract pins.
struct ContractPins {
    expected: PinnedContract,
    limits: FaultLimits,
}

impl ContractPins {
    /// Whether a field or the rate of a fault is pinned.
    fn is_any(&self) -> bool {
        let mut tools = self.expected.values();
        tools.any(|tool| *tool != PinnedToolContract::default()) || !self.limits.is_empty()
    }
}

/// How often every case has run at each look: twice as often as at the one before. The looks are fixed
/// before the first trial, because their number divides the error of the statistics.
fn looks(args: &ProbeRunArgs, suite: &ProbeSuite) -> Vec<u32> {
    let first = args.ask.repeat.unwrap_or(suite.sampling.repeat).get();
    let most = args.max_trials.get().max(first);
    let mut looks = vec![first];
    let mut next = first;
    while next < most {
        next = next.saturating_mul(2).min(most);
        looks.push(next);
    }
    looks
}

/// Runs more trials until no comparison is inconclusive, or until the looks or the limits are used up.
fn run_until_decided(
    providers: Vec<Provider>,
    suite: &ProbeSuite,
    looks: &[u32],
    (args, judge): (&ProbeRunArgs, &JudgeArgs),
) -> Result<Vec<Snapshot>, CliError> {
    let mut runs = run_suite::ProviderRuns::new(providers)?;
    let mut done = 0;
    for (at, look) in looks.iter().enumerate() {
        runs.run(suite, &args.ask, NonZeroU32::new(look - done))?;
        done = *look;
        let taken = runs.snapshots(suite);
        let compared = compare_all(&taken, None, judge)?;
        let is_open = |it: &ProbeComparison| it.verdict == Verdict::NotMeasured;
        // More trials help neither a provider that does not answer nor a decided comparison.
        let measured = taken.iter().all(all_measured);
        if !measured || !compared.iter().any(is_open) || runs.is_exhausted(&args.ask) {
            break;
        }
        if at + 1 < looks.len() {
            print_status(&format!(
                "inconclusive after {look} trials of each case; running more"
            ));
        }
    }
    Ok(runs.finish(suite))
}

/// Each provider with the next, and each with what is pinned. What was not measured is compared with
/// nothing, unless the provider refused the tools: that is a finding.
fn compare_all(
    taken: &[Snapshot],
    pins: Option<&ContractPins>,
    judge: &JudgeArgs,
) -> Result<Vec<ProbeComparison>, ProbeError> {
    let telling = |it: &&Snapshot| it.is_measured() || it.rejects_tools();
    let measured: Vec<&Snapshot> = taken.iter().filter(telling).collect();
    let mut compared = Vec::new();
    for pair in measured.windows(2) {
        if let [old, new] = pair {
            let (old, new) = ((*old).clone(), (*new).clone());
            compared.push(comparison::compare_snapshots(
                &VersionedSnapshot::V2(old),
                &VersionedSnapshot::V2(new),
                judge,
            )?);
        }
    }
    if let Some(ContractPins { expected, limits }) = pins {
        let pinned = measured
            .iter()
            .map(|it| comparison::compare_with_pins(it, (expected, limits), judge));
        compared.extend(pinned);
    }
    Ok(compared)
}

fn providers_from_options(args: &ProbeRunArgs) -> Result<Vec<Provider>, ProbeError> {
    let both = args.base_url.as_deref();
    let sides = [
        (&args.old, &args.old_model, args.old_base_url.as_deref()),
        (&args.new, &args.new_model, args.new_base_url.as_deref()),
    ];
    let sides = sides.into_iter().filter_map(|(name, model, base_url)| {
        let name = name.as_deref()?;
        Some(Provider::resolve(name, model.as_deref(), base_url.or(both)))
    });
    Ok(sides.collect::<Result<_, _>>()?)
}

fn providers_from_contract(
    args: &ProbeRunArgs,
    contract: &ContractFile,
) -> Result<RunPlan, ProbeError> {
    let names = || contract.providers.iter().map(|it| it.name.as_str());
    let unknown = args
        .base
        .iter()
        .find(|base| !names().any(|it| it == **base));
    if let Some(name) = unknown {
        return Err(ProbeError::NotInContract {
            contract: contract.path.clone(),
            name: name.clone(),
            suggestion: did_you_mean(name, names()),
        });
    }
    let providers = if args.base.is_empty() {
        contract.providers.clone()
    } else {
        let wanted = args.base.iter();
        let found = wanted.filter_map(|name| contract.providers.iter().find(|it| it.name == *name));
        found.cloned().collect()
    };
    let limits = contract.fault_limits.clone();
    let expected = contract.expected.clone();
    Ok(RunPlan {
        providers,
        suite: ProbeSuite::load(&contract.suite)?,
        pins: match expected {
            None if limits.is_empty() => None,
            expected => Some(ContractPins {
                expected: expected.unwrap_or_default(),
                limits,
            }),
        },
    })
}
