use toolwarden_drift::contract::{AnySnapshot, Pinned, PinnedTool, Snapshot};
use toolwarden_model::closest;
use toolwarden_probe::{Contract, Provider, Suite};

use super::comparing::{self, Compared};
use super::snapshot::all_measured;
use super::{ProbeError, asking, report};
use crate::args::ProbeRunArgs;
use crate::error::CliError;
use crate::output::Verdict;

pub(super) fn run(args: &ProbeRunArgs) -> Result<Verdict, CliError> {
    let (providers, suite, expected) = match &args.contract {
        Some(path) => of_contract(args, &Contract::load(path).map_err(ProbeError::File)?)?,
        None => (
            of_options(args)?,
            asking::suite(args.ask.suite.as_deref())?,
            None,
        ),
    };
    let pins = |it: &Pinned| it.values().any(|tool| *tool != PinnedTool::default());
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
                let body = asking::bundled(&provider.name)?;
                asking::of_fixture(provider, &suite, model, body)
            })
            .collect();
        taken?
    } else {
        asking::ask(providers, &suite, &args.ask)?
    };
    let compared = compared(&taken, expected.as_ref(), args)?;
    let place = args.contract.as_ref().or(args.ask.suite.as_ref());
    let place = place.map_or_else(|| suite.name.clone(), |it| it.display().to_string());
    report::show(&compared, &taken, &place, &args.judge)?;
    let measured = taken.iter().all(all_measured);
    Ok(comparing::verdict(&compared, &args.judge, measured))
}

/// Each provider with the next, and each with what is pinned. What was not measured is compared with
/// nothing.
fn compared(
    taken: &[Snapshot],
    expected: Option<&Pinned>,
    args: &ProbeRunArgs,
) -> Result<Vec<Compared>, ProbeError> {
    let measured: Vec<&Snapshot> = taken.iter().filter(|it| it.is_measured()).collect();
    let mut compared = Vec::new();
    for pair in measured.windows(2) {
        if let [old, new] = pair {
            let (old, new) = ((*old).clone(), (*new).clone());
            compared.push(comparing::snapshots(
                &AnySnapshot::Two(old),
                &AnySnapshot::Two(new),
                &args.judge,
            )?);
        }
    }
    if let Some(expected) = expected {
        let held = measured
            .iter()
            .map(|it| comparing::pinned(it, expected, &args.judge));
        compared.extend(held);
    }
    Ok(compared)
}

fn of_options(args: &ProbeRunArgs) -> Result<Vec<Provider>, ProbeError> {
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

fn of_contract(
    args: &ProbeRunArgs,
    contract: &Contract,
) -> Result<(Vec<Provider>, Suite, Option<Pinned>), ProbeError> {
    let names = || contract.providers.iter().map(|it| it.name.as_str());
    let unknown = args
        .base
        .iter()
        .find(|base| !names().any(|it| it == **base));
    if let Some(name) = unknown {
        return Err(ProbeError::NotInContract {
            contract: contract.path.clone(),
            name: name.clone(),
            suggestion: closest(name, names()),
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
        Suite::load(&contract.suite)?,
        contract.expected.clone(),
    ))
}
