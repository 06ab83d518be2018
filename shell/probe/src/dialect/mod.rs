//! Tests which JSON Schema keywords a provider accepts.

mod dialect_probe;
mod family;
mod report;

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use toolwarden_model::reply::TrialFailure;

use crate::probe_target::ProbeTarget;
use crate::run::{RunProgress, RunSettings};
use dialect_probe::DialectProbe;

pub use family::{KeywordFamily, families};
pub use report::{DialectError, DialectReport, KeywordFamilyOutcome, KeywordFamilyReport};

/// Sends one small schema for each family of keywords and reports how the provider handled it.
///
/// A plain schema is sent first, to find out which `tool_choice` the provider accepts. If the
/// provider rejects the plain schema, the families are not measured. If it accepts the schema but
/// the model does not honour it, calls are no evidence, and only rejections are reported.
pub async fn probe_dialect(
    target: ProbeTarget,
    settings: &RunSettings,
    progress: impl Fn(RunProgress) + Send + Sync + 'static,
) -> DialectReport {
    let families = families();
    let provider = target.provider.clone();
    progress(RunProgress::Started {
        target: 0,
        trials: families.len(),
    });
    let asking = Arc::new(DialectProbe::new(target, settings, Arc::new(progress)));
    let (tool_choice, plain) = asking.probe_plain().await;
    let mut reports = Vec::new();
    if plain.outcome == KeywordFamilyOutcome::NotMeasured
        || plain.outcome == KeywordFamilyOutcome::Rejected
    {
        let reason = plain.message.clone();
        reports.extend(families.iter().map(|it| KeywordFamilyReport {
            message: reason.clone(),
            ..KeywordFamilyReport::not_measured(it)
        }));
    } else {
        let permits = Arc::new(Semaphore::new(settings.concurrency.max(1)));
        let mut works = JoinSet::new();
        for (place, family) in families.iter().cloned().enumerate() {
            let (asking, permits) = (Arc::clone(&asking), Arc::clone(&permits));
            works.spawn(async move {
                // The semaphore is never closed.
                let _permit = permits.acquire_owned().await;
                (place, asking.probe_family(&family, tool_choice).await)
            });
        }
        reports.extend(families.iter().map(KeywordFamilyReport::not_measured));
        while let Some(work) = works.join_next().await {
            // A family whose task panicked stays unmeasured.
            if let Ok((place, report)) = work
                && let Some(slot) = reports.get_mut(place)
            {
                *slot = qualify_report(report, &plain);
            }
        }
    }
    DialectReport {
        provider: provider.name,
        model_id: provider.model_id,
        wire: provider.wire,
        at: None,
        tool_choice: tool_choice.to_owned(),
        plain,
        families: reports,
    }
}

/// Downgrades a family's report if the plain schema already failed.
fn qualify_report(report: KeywordFamilyReport, plain: &KeywordFamilyReport) -> KeywordFamilyReport {
    let reason = match (plain.called, &plain.message) {
        (false, _) => "the model did not call the tool of a plain schema either".to_owned(),
        (true, Some(against)) => format!("a call went against a plain schema too: {against}"),
        (true, None) => return report,
    };
    match report.outcome {
        KeywordFamilyOutcome::Rejected | KeywordFamilyOutcome::NotMeasured => report,
        KeywordFamilyOutcome::Accepted | KeywordFamilyOutcome::Ignored => KeywordFamilyReport {
            outcome: KeywordFamilyOutcome::NotMeasured,
            message: Some(reason),
            ..report
        },
    }
}

/// Whether the provider refused the content of the request, rather than its timing or its sender.
fn is_refusal(failure: TrialFailure, status: Option<u16>) -> bool {
    failure == TrialFailure::SchemaRejected
        || (failure == TrialFailure::Status && matches!(status, Some(400 | 422)))
}
