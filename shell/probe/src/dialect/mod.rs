//! Which keywords of JSON Schema a provider takes, found out by asking.

mod ask;
mod family;
mod report;

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use toolwarden_model::reply::Failure;

use crate::run::{Progress, Settings, Target};
use ask::Asking;

pub use family::{Family, families};
pub use report::{DialectError, DialectReport, FamilyOutcome, FamilyReport};

/// Sends one small schema for each family of keywords and tells what the provider did with it.
///
/// A plain schema goes first, to learn which `tool_choice` the provider takes. Where not even that
/// is taken, nothing is told of the families. Where that is taken and not honoured, calls are no
/// evidence, and only refusals are told.
pub async fn dialect(
    target: Target,
    settings: &Settings,
    progress: impl Fn(Progress) + Send + Sync + 'static,
) -> DialectReport {
    let families = families();
    let provider = target.provider.clone();
    progress(Progress::Started {
        target: 0,
        trials: families.len(),
    });
    let asking = Arc::new(Asking::new(target, settings, Arc::new(progress)));
    let (tool_choice, plain) = asking.plain().await;
    let mut reports = Vec::new();
    if plain.outcome == FamilyOutcome::NotMeasured || plain.outcome == FamilyOutcome::Rejected {
        let reason = plain.message.clone();
        reports.extend(families.iter().map(|it| FamilyReport {
            message: reason.clone(),
            ..FamilyReport::not_measured(it)
        }));
    } else {
        let permits = Arc::new(Semaphore::new(settings.concurrency.max(1)));
        let mut works = JoinSet::new();
        for (place, family) in families.iter().cloned().enumerate() {
            let (asking, permits) = (Arc::clone(&asking), Arc::clone(&permits));
            works.spawn(async move {
                // The semaphore is never closed.
                let _permit = permits.acquire_owned().await;
                (place, asking.family(&family, tool_choice).await)
            });
        }
        reports.extend(families.iter().map(FamilyReport::not_measured));
        while let Some(work) = works.join_next().await {
            // One that panicked stays unmeasured.
            if let Ok((place, report)) = work
                && let Some(slot) = reports.get_mut(place)
            {
                *slot = told(report, &plain);
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

/// What a report of a family is worth, by what became of a plain schema.
fn told(report: FamilyReport, plain: &FamilyReport) -> FamilyReport {
    let reason = match (plain.called, &plain.message) {
        (false, _) => "the model did not call the tool of a plain schema either".to_owned(),
        (true, Some(against)) => format!("a call went against a plain schema too: {against}"),
        (true, None) => return report,
    };
    match report.outcome {
        FamilyOutcome::Rejected | FamilyOutcome::NotMeasured => report,
        FamilyOutcome::Accepted | FamilyOutcome::Ignored => FamilyReport {
            outcome: FamilyOutcome::NotMeasured,
            message: Some(reason),
            ..report
        },
    }
}

/// Whether a failure is the provider's answer to what was asked, and not to when or by whom.
fn is_refusal(failure: Failure, status: Option<u16>) -> bool {
    failure == Failure::SchemaRejected
        || (failure == Failure::Status && matches!(status, Some(400 | 422)))
}
