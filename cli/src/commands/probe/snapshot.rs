use toolwarden_drift::contract::Snapshot;
use toolwarden_probe::Provider;

use super::{ProbeError, asking, screen, writing};
use crate::args::{Compat, PlainFormat, SnapshotArgs};
use crate::error::CliError;
use crate::output::{Verdict, print};

pub(super) fn run(args: &SnapshotArgs) -> Result<Verdict, CliError> {
    let suite = asking::suite(args.ask.suite.as_deref())?;
    let asked = &args.provider;
    let (model, base_url) = (asked.model.as_deref(), asked.base_url.as_deref());
    let taken = if let Some(path) = &args.fixture {
        let body = toolwarden_files::read_bytes(path).map_err(|source| ProbeError::Read {
            path: path.clone(),
            source,
        })?;
        let provider = Provider::find(&asked.provider)
            .unwrap_or_else(|_| Provider::custom(&asked.provider, "", model.unwrap_or_default()));
        asking::of_fixture(provider, &suite, model, &body)?
    } else {
        let provider =
            Provider::resolve(&asked.provider, model, base_url).map_err(ProbeError::Provider)?;
        if args.from_fixtures {
            let body = asking::bundled(&asked.provider)?;
            asking::of_fixture(provider, &suite, model, body)?
        } else {
            let mut taken = asking::ask(vec![provider], &suite, &args.ask)?;
            let Some(taken) = taken.pop() else {
                return Ok(Verdict::NotMeasured);
            };
            taken
        }
    };
    // A failure is no contract: nothing is written that could be compared later.
    let Some(text) = text(&taken, args.compat) else {
        return Ok(Verdict::NotMeasured);
    };
    if let Some(path) = &args.output {
        writing::file(path, &text)?;
    }
    match (args.format, args.quiet, &args.output) {
        (PlainFormat::Json, _, _) | (_, true, None) => print(&text)?,
        (PlainFormat::Text, true, Some(_)) => {}
        (PlainFormat::Text, false, _) => print(&screen::snapshot(&taken))?,
    }
    Ok(Verdict::measured(all_measured(&taken)))
}

fn text(taken: &Snapshot, compat: Option<Compat>) -> Option<String> {
    match compat {
        Some(Compat::Tooldrift) => taken.to_tooldrift().map(|it| it.to_text()),
        None => taken.is_measured().then(|| taken.to_text()),
    }
}

pub(super) const fn all_measured(taken: &Snapshot) -> bool {
    taken.is_measured() && taken.trials.measured == taken.trials.planned
}
