use std::collections::BTreeMap;

use toolwarden_drift::text::{Finding, Named, Weight, scan, scan_together};

use super::seen::{Seen, Strays};
use crate::args::{LeastWeight, ReportFormat, ScanArgs};
use crate::error::CliError;
use crate::input::each_tool;
use crate::output::{Verdict, print};
use crate::report::{self, Check, Level, Report};
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
    for (index, finding) in scan_together(&named, Weight::Low) {
        found.entry(index).or_default().push(finding);
    }
    found
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
