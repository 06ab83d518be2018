use toolwarden_drift::text::{Detector, Finding, Named, Weight, name_pointer, scan, scan_together};

use super::seen::{Seen, Strays};
use crate::args::{LeastWeight, ReportFormat, ScanArgs};
use crate::error::CliError;
use crate::input::each_tool;
use crate::output::{Verdict, print};
use crate::report::{self, About, Check, Level, Report};
use crate::style;

pub(super) fn run(args: &ScanArgs) -> Result<Verdict, CliError> {
    let mut seen: Vec<Seen> = Vec::new();
    let mut found: Vec<Vec<Finding>> = Vec::new();
    let mut strays = Strays::default();
    each_tool(&args.input, |read| {
        if let Some(mut tool) = strays.sort(read) {
            found.push(scan(tool.tool.definition()));
            // A list may be long: from here on its texts are enough.
            tool.tool.compact();
            seen.push(tool);
        }
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
    add_neighbours(&seen, &mut found);
    let hidden = found
        .iter()
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

/// Adds to each definition what only shows beside the others.
fn add_neighbours(seen: &[Seen], found: &mut [Vec<Finding>]) {
    let mut servers = seen.iter().map(|tool| tool.place.file.as_str());
    let first = servers.next();
    let several = servers.any(|server| Some(server) != first);
    let unread = serde_json::Value::Null;
    let named: Vec<Named<'_>> = seen
        .iter()
        .map(|tool| Named {
            server: &tool.place.file,
            name: &tool.tool.name,
            // Within one server names are all that is compared.
            definition: if several {
                tool.tool.definition()
            } else {
                &unread
            },
        })
        .collect();
    for (index, mut finding) in scan_together(&named, Weight::Low) {
        let (Some(tool), Some(found)) = (seen.get(index), found.get_mut(index)) else {
            continue;
        };
        if !several {
            finding.pointer = name_pointer(tool.tool.definition());
        }
        found.push(finding);
    }
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
        Detector::Introduced => "Words came that point to an address, a secret or another tool.",
        Detector::AnnotationContradiction => "Annotations contradict the name or the arguments.",
    };
    About {
        id: detector.as_str(),
        finds,
        help: "Have a person read the definition before a model does.",
    }
}

fn report(seen: &[Seen], found: &[Vec<Finding>], least: Weight) -> Report {
    let mut rows = Vec::new();
    let mut rejected = 0;
    for (tool, findings) in seen.iter().zip(found) {
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
