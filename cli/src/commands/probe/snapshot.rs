use toolwarden_probe::Provider;
use toolwarden_trials::Snapshot;

use super::{run_suite, text_report, write_file};
use crate::args::{Compat, PlainFormat, SnapshotArgs};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::print_status;
use crate::error::{CliError, ProbeError};
use crate::output::print_text;

pub(super) fn run(args: &SnapshotArgs) -> Result<CommandOutcome, CliError> {
    let suite = run_suite::load_suite(args.ask.suite.as_deref())?;
    let asked = &args.provider;
    let (model, base_url) = (asked.model.as_deref(), asked.base_url.as_deref());
    let taken = if let Some(path) = &args.fixture {
        let body = toolwarden_files::read_bytes(path).map_err(|source| ProbeError::Read {
            path: path.clone(),
            source,
        })?;
        let provider = Provider::find(&asked.provider)
            .unwrap_or_else(|_| Provider::custom(&asked.provider, "", model.unwrap_or_default()));
        run_suite::snapshot_from_fixture(provider, &suite, model, &body)?
    } else {
        let provider =
            Provider::resolve(&asked.provider, model, base_url).map_err(ProbeError::Provider)?;
        if args.from_fixtures {
            let body = run_suite::bundled_fixture(&asked.provider)?;
            run_suite::snapshot_from_fixture(provider, &suite, model, body)?
        } else {
            let mut taken = run_suite::run_providers(vec![provider], &suite, &args.ask)?;
            let Some(taken) = taken.pop() else {
                return Ok(CommandOutcome::NotMeasured);
            };
            taken
        }
    };
    // A failure is not a contract: nothing is written that could be compared later.
    let Some(text) = text(&taken, args.compat) else {
        return Ok(CommandOutcome::NotMeasured);
    };
    if let Some(path) = &args.output {
        write_file::write_file(path, &text)?;
    }
    if args.compat.is_some() && args.output.is_none() {
        // That program keeps standard output for the snapshot, so that it can be redirected.
        print_text(&text)?;
        if !args.quiet && args.format == PlainFormat::Text {
            print_status(text_report::snapshot_text(&taken).trim_end());
        }
        return Ok(CommandOutcome::from_measured(all_measured(&taken)));
    }
    match (args.format, args.quiet, &args.output) {
        (PlainFormat::Json, _, _) | (_, true, None) => print_text(&text)?,
        (PlainFormat::Text, true, Some(_)) => {}
        (PlainFormat::Text, false, _) => print_text(&text_report::snapshot_text(&taken))?,
    }
    Ok(CommandOutcome::from_measured(all_measured(&taken)))
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
