use toolwarden_model::did_you_mean;
use toolwarden_probe::{ContractFile, ProbeSuite, Provider};
use toolwarden_trials::{PinnedContract, PinnedToolContract, Snapshot, VersionedSnapshot};

use super::comparison::{self, ProbeComparison};
use super::snapshot::all_measured;
use super::{report, run_suite};
use crate::args::ProbeRunArgs;
use crate::error::{CliError, ProbeError};
use crate::output::CommandOutcome;

pub(super) fn run(args: &ProbeRunArgs) -> Result<CommandOutcome, CliError> {
    let (providers, suite, expected) = match &args.contract {
        Some(path) => {
            providers_from_contract(args, &ContractFile::load(path).map_err(ProbeError::File)?)?
        }
        None => (
            providers_from_options(args)?,
            run_suite::load_suite(args.ask.suite.as_deref())?,
            None,
        ),
    };
    let pins = |it: &PinnedContract| {
        it.values()
            .any(|tool| *tool != PinnedToolContract::default())
    };
    if providers.len() < 2 && !expected.as_ref().is_some_and(pins) {
        return Err(ProbeError::NothingToCompare.into());
    }
    let taken = if args.from_fixtures {
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
    let compared = compare_all(&taken, expected.as_ref(), args)?;
    let place = args.contract.as_ref().or(args.ask.suite.as_ref());
    let place = place.map_or_else(|| suite.name.clone(), |it| it.display().to_string());
    report::print_comparisons(&compared, &taken, &place, &args.judge)?;
    let measured = taken.iter().all(all_measured);
    Ok(comparison::overall_verdict(&compared, &args.judge, measured).into())
}

/// Each provider with the next, and each with what is pinned. What was not measured is compared with
/// nothing.
fn compare_all(
    taken: &[Snapshot],
    expected: Option<&PinnedContract>,
    args: &ProbeRunArgs,
) -> Result<Vec<ProbeComparison>, ProbeError> {
    let measured: Vec<&Snapshot> = taken.iter().filter(|it| it.is_measured()).collect();
    let mut compared = Vec::new();
    for pair in measured.windows(2) {
        if let [old, new] = pair {
            let (old, new) = ((*old).clone(), (*new).clone());
            compared.push(comparison::compare_snapshots(
                &VersionedSnapshot::V2(old),
                &VersionedSnapshot::V2(new),
                &args.judge,
            )?);
        }
    }
    if let Some(expected) = expected {
        let held = measured
            .iter()
            .map(|it| comparison::compare_with_pins(it, expected, &args.judge));
        compared.extend(held);
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
) -> Result<(Vec<Provider>, ProbeSuite, Option<PinnedContract>), ProbeError> {
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
    Ok((
        providers,
        ProbeSuite::load(&contract.suite)?,
        contract.expected.clone(),
    ))
}
