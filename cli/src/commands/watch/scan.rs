use std::collections::BTreeMap;

use toolwarden_drift::text::{Detector, Finding, Named, Weight, scan, scan_together};

use super::seen::{Seen, Strays};
use crate::args::{LeastWeight, ReportFormat, ScanArgs};
use crate::error::CliError;
use crate::input::each_tool;
use crate::output::{Verdict, print};
use crate::report::{self, About, Check, Level, Report};
use crate::style;

pub(super) fn run(args: &ScanArgs) -> Result<Verdict, CliError> {
    let mut seen: Vec<Seen> = Vec::new();
    let mut strays = Strays::default();
    each_tool(&args.input, |read| {
        seen.extend(strays.sort(read));
        Ok(())
    })?;
    if seen.is_empty() {
        return Err(args.input.nothing_found());
    }
    let least = match args.weight {
        LeastWeight::Low => Weight::Low,
        LeastWeight::Medium => Weight::Medium,
        LeastWeight::High => Weight::High,
    };
    let found = findings(&seen);
    let hidden = found
        .values()
        .flatten()
        .filter(|it| it.weight < least)
        .count();
    let report = report(&seen, &found, least);
    let failed = !report.findings.is_empty();
    let mut rendered = report.render(args.format);
    if args.format == ReportFormat::Text && hidden > 0 {
        let dim = style::DIM;
        rendered.push_str(&format!(
            "{dim}{hidden} findings of less weight not shown; --weight low shows all{dim:#}\n"
        ));
    }
    print(&rendered)?;
    Ok(Verdict::of(failed))
}

/// What each definition carries, by its place in the list.
fn findings(seen: &[Seen]) -> BTreeMap<usize, Vec<Finding>> {
    let mut found: BTreeMap<usize, Vec<Finding>> = BTreeMap::new();
    for (index, tool) in seen.iter().enumerate() {
        found.insert(index, scan(tool.tool.definition()));
    }
    let named: Vec<Named<'_>> = seen
        .iter()
        .map(|tool| Named {
            server: &tool.place.file,
            name: &tool.tool.name,
            definition: tool.tool.definition(),
        })
        .collect();
    for (index, finding) in scan_together(&named) {
        found.entry(index).or_default().push(finding);
    }
    found
}

/// What a detector is about.
const fn about(detector: Detector) -> About {
    let finds = match detector {
        Detector::HiddenUnicode => {
            "The text has characters that a model reads and a person does not see."
        }
        Detector::BidiControl => {
            "The text has characters that show it in another order than it is read."
        }
        Detector::TerminalEscape => "The text has control characters that a terminal obeys.",
        Detector::ConfusableName => "A name is written with letters that pass for others.",
        Detector::CollidingName => "A name is, or passes for, the name of another tool.",
        Detector::CrossServerReference => "The text names a tool of another server.",
        Detector::Injection => "The text instructs the model.",
        Detector::AnnotationContradiction => "Annotations contradict the name or the arguments.",
    };
    About {
        id: detector.as_str(),
        finds,
        help: "Have a person read the definition before a model does.",
    }
}

fn report(seen: &[Seen], found: &BTreeMap<usize, Vec<Finding>>, least: Weight) -> Report {
    let mut rows = Vec::new();
    let mut rejected = 0;
    for (tool, findings) in seen.iter().zip(found.values()) {
        let told: Vec<&Finding> = findings.iter().filter(|it| it.weight >= least).collect();
        rejected += usize::from(!told.is_empty());
        let positions = tool.place.positions(told.iter().map(|it| &it.pointer));
        for (finding, position) in told.iter().zip(positions) {
            let reads = finding
                .decoded
                .as_ref()
                .map(|decoded| format!(" (reads: {decoded})"));
            rows.push(report::Finding {
                check: "text".to_owned(),
                rule: finding.detector.as_str(),
                level: if finding.weight == Weight::High {
                    Level::Error
                } else {
                    Level::Warning
                },
                tool: tool.tool.name.clone(),
                message: format!("{}{}", finding.message, reads.unwrap_or_default()),
                file: tool.place.file.clone(),
                line: position.line,
                column: position.column,
                pointer: tool.place.pointer.join(&finding.pointer).to_string(),
                fixable: false,
                detail: report::Detail {
                    origin: tool.place.origin,
                    about: Some(about(finding.detector)),
                    fingerprint: Some(report::fingerprint([
                        finding.detector.as_str(),
                        &tool.tool.name,
                        finding.pointer.as_str(),
                        &finding.message,
                    ])),
                },
            });
        }
    }
    Report {
        schema: "toolwarden/watch/scan/v1",
        checks: vec![Check {
            name: "text".to_owned(),
            basis: None,
            rejected,
            outcome: "with findings",
            tools: seen.len(),
            failing: &[Level::Error],
        }],
        subjects: seen.iter().map(|tool| tool.tool.name.clone()).collect(),
        findings: rows,
    }
}
