use toolwarden_probe::{DialectReport, FamilyOutcome, Provider};

use super::{ProbeError, asking, writing};
use crate::args::{DialectArgs, PlainFormat};
use crate::error::CliError;
use crate::output::{Verdict, print};
use crate::style::{self, visible};

pub(super) fn run(args: &DialectArgs) -> Result<Verdict, CliError> {
    let asked = &args.provider;
    let (model, base_url) = (asked.model.as_deref(), asked.base_url.as_deref());
    let provider =
        Provider::resolve(&asked.provider, model, base_url).map_err(ProbeError::Provider)?;
    let target = asking::target(provider)?;
    let settings = asking::settings(&args.limits);
    let mut report =
        asking::waited_for(|progress| toolwarden_probe::dialect(target, &settings, progress))?;
    report.at = Some(format!("{:.3}", jiff::Timestamp::now()));
    let document = report.to_json().map_err(ProbeError::Dialect)?;
    if let Some(path) = &args.output {
        writing::file(path, &document)?;
    }
    print(&match args.format {
        PlainFormat::Text => text(&report),
        PlainFormat::Json => document,
    })?;
    let known = |it: FamilyOutcome| it != FamilyOutcome::NotMeasured;
    Ok(Verdict::measured(
        report.families.iter().all(|it| known(it.outcome)),
    ))
}

fn text(report: &DialectReport) -> String {
    let mut out = format!(
        "{}/{} over {}\n",
        visible(&report.provider),
        visible(&report.model_id),
        report.wire
    );
    for family in &report.families {
        let (style, word) = match family.outcome {
            FamilyOutcome::Accepted => (style::GOOD, "accepted"),
            FamilyOutcome::Rejected => (style::ERROR, "rejected"),
            FamilyOutcome::Ignored => (style::WARNING, "ignored"),
            FamilyOutcome::NotMeasured => (style::DIM, "not measured"),
        };
        let status = family.status.map_or(String::new(), |it| format!(" ({it})"));
        let message = family
            .message
            .as_deref()
            .map_or(String::new(), |it| format!("{status}: {}", visible(it)));
        let is_untried = family.outcome == FamilyOutcome::Accepted && !family.called;
        let untried = if is_untried { " (not called)" } else { "" };
        out.push_str(&format!(
            "  {style}{word:<12}{style:#}  {:<24}  {}{untried}{message}\n",
            family.id, family.what
        ));
    }
    out
}
