use toolwarden_probe::{DialectReport, KeywordFamilyOutcome, Provider};

use super::{run_suite, write_file};
use crate::args::{DialectArgs, PlainFormat};
use crate::command_outcome::CommandOutcome;
use crate::error::{CliError, ProbeError};
use crate::output::print_text;
use crate::style::{self, escape_controls};

pub(super) fn run(args: &DialectArgs) -> Result<CommandOutcome, CliError> {
    let asked = &args.provider;
    let (model, base_url) = (asked.model.as_deref(), asked.base_url.as_deref());
    let provider =
        Provider::resolve(&asked.provider, model, base_url).map_err(ProbeError::Provider)?;
    let target = run_suite::load_target(provider)?;
    let settings = run_suite::run_settings(&args.limits);
    let mut report = run_suite::run_interruptible(|progress| {
        toolwarden_probe::probe_dialect(target, &settings, progress)
    })?;
    report.at = Some(format!("{:.3}", jiff::Timestamp::now()));
    let document = report.to_json().map_err(ProbeError::Dialect)?;
    if let Some(path) = &args.output {
        write_file::write_file(path, &document)?;
    }
    print_text(&match args.format {
        PlainFormat::Text => text(&report),
        PlainFormat::Json => document,
    })?;
    let known = |it: KeywordFamilyOutcome| it != KeywordFamilyOutcome::NotMeasured;
    Ok(CommandOutcome::from_measured(
        report.families.iter().all(|it| known(it.outcome)),
    ))
}

fn text(report: &DialectReport) -> String {
    let mut out = format!(
        "{}/{} over {}\n",
        escape_controls(&report.provider),
        escape_controls(&report.model_id),
        report.wire
    );
    for family in &report.families {
        let (style, word) = match family.outcome {
            KeywordFamilyOutcome::Accepted => (style::SUCCESS, "accepted"),
            KeywordFamilyOutcome::Rejected => (style::ERROR, "rejected"),
            KeywordFamilyOutcome::Ignored => (style::WARNING, "ignored"),
            KeywordFamilyOutcome::NotMeasured => (style::DIM, "not measured"),
        };
        let status = family.status.map_or(String::new(), |it| format!(" ({it})"));
        let message = family.message.as_deref().map_or(String::new(), |it| {
            format!("{status}: {}", escape_controls(it))
        });
        let is_untried = family.outcome == KeywordFamilyOutcome::Accepted && !family.called;
        let untried = if is_untried { " (not called)" } else { "" };
        out.push_str(&format!(
            "  {style}{word:<12}{style:#}  {:<24}  {}{untried}{message}\n",
            family.id, family.what
        ));
    }
    out
}
