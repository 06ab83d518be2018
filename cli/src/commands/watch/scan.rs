use toolwarden_drift::text::{
    Detector, ServerTool, TextFinding, Weight, name_pointer, scan, scan_across_tools,
};

use super::read_tools::{LocatedTool, OtherEntries, instructions, members_beside_tools};
use crate::args::{MinWeight, ReportFormat, ScanArgs};
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;
use crate::input::{InputListFacts, each_tool_except};
use crate::output::print_text;
use crate::report::{self, FindingLevel, FindingReport, ReportCheck, RuleInfo};
use crate::style;

pub(super) fn run(args: &ScanArgs) -> Result<CommandOutcome, CliError> {
    let mut seen: Vec<LocatedTool> = Vec::new();
    let mut found: Vec<Vec<TextFinding>> = Vec::new();
    let mut strays = OtherEntries::default();
    let mut facts = InputListFacts::default();
    each_tool_except(
        &args.input,
        |_| None,
        |read| {
            if let Some(mut tool) = strays.take_named(read) {
                found.push(scan(tool.observation.definition()));
                // A list may be long: from here on its texts are enough.
                tool.observation.compact();
                seen.push(tool);
            }
            Ok(())
        },
        &mut facts,
    )?;
    if args.input.tools.is_empty() {
        for said in facts.instructions {
            let tool = instructions(vec![said]);
            found.extend(tool.iter().map(|it| scan(it.observation.definition())));
            seen.extend(tool);
        }
        for tool in members_beside_tools(facts.beside) {
            found.push(scan(tool.observation.definition()));
            seen.push(tool);
        }
    }
    if seen.is_empty() {
        return Err(args.input.nothing_found());
    }
    let least = match args.weight {
        MinWeight::Low => Weight::Low,
        MinWeight::Medium => Weight::Medium,
        MinWeight::High => Weight::High,
    };
    add_cross_tool_findings(&seen, &mut found);
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
    print_text(&rendered)?;
    Ok(CommandOutcome::from_finding(failed))
}

/// Adds to each definition what only shows beside the others.
fn add_cross_tool_findings(seen: &[LocatedTool], found: &mut [Vec<TextFinding>]) {
    let mut servers = seen.iter().map(|tool| &*tool.location.file);
    let first = servers.next();
    let several = servers.any(|server| Some(server) != first);
    let unread = serde_json::Value::Null;
    let named: Vec<ServerTool<'_>> = seen
        .iter()
        .map(|tool| ServerTool {
            server: &tool.location.file,
            name: &tool.observation.name,
            // Within one server names are all that is compared.
            definition: if several {
                tool.observation.definition()
            } else {
                &unread
            },
        })
        .collect();
    for (index, mut finding) in scan_across_tools(&named, Weight::Low) {
        let (Some(tool), Some(found)) = (seen.get(index), found.get_mut(index)) else {
            continue;
        };
        if !several {
            finding.pointer = name_pointer(tool.observation.definition());
        }
        found.push(finding);
    }
}

/// What a detector is about.
const fn rule_info(detector: Detector) -> RuleInfo {
    let finds = match detector {
        Detector::HiddenUnicode => {
            "The text has characters that a model reads and a person does not see."
        }
        Detector::BidiControl => {
            "The text has characters that show it in another order than it is read."
        }
        Detector::TerminalEscape => "The text has control characters that a terminal obeys.",
        Detector::ConfusableName => "A name has letters that look like other letters.",
        Detector::CollidingName => "A name equals or imitates the name of another tool.",
        Detector::CrossServerReference => "The text names a tool of another server.",
        Detector::Injection => "The text instructs the model.",
        Detector::Introduced => "Added words name an address, a secret or another tool.",
        Detector::AnnotationContradiction => "Annotations contradict the name or the arguments.",
    };
    RuleInfo {
        id: detector.as_str(),
        finds,
        help: "Have a person read the definition before a model does.",
    }
}

fn report(seen: &[LocatedTool], found: &[Vec<TextFinding>], least: Weight) -> FindingReport {
    let mut rows = Vec::new();
    let mut rejected = 0;
    for (tool, findings) in seen.iter().zip(found) {
        let told: Vec<&TextFinding> = findings.iter().filter(|it| it.weight >= least).collect();
        rejected += usize::from(!told.is_empty());
        let positions = tool.location.positions(told.iter().map(|it| &it.pointer));
        for (finding, position) in told.iter().zip(positions) {
            let reads = finding
                .decoded
                .as_ref()
                .map(|decoded| format!(" (reads: {decoded})"));
            rows.push(report::ReportFinding {
                check: "text".to_owned(),
                rule: finding.detector.as_str(),
                level: if finding.weight == Weight::High {
                    FindingLevel::Error
                } else {
                    FindingLevel::Warning
                },
                tool: tool.observation.name.clone(),
                message: format!("{}{}", finding.message, reads.unwrap_or_default()),
                file: tool.location.file.to_string(),
                line: position.line,
                column: position.column,
                pointer: tool.location.pointer.join(&finding.pointer).to_string(),
                fixable: false,
                detail: report::FindingDetail {
                    group: None,
                    origin: tool.location.origin,
                    rule_info: Some(rule_info(finding.detector)),
                    fingerprint: Some(report::fingerprint([
                        finding.detector.as_str(),
                        &tool.observation.name,
                        finding.pointer.as_str(),
                        &finding.message,
                    ])),
                },
            });
        }
    }
    FindingReport {
        schema: "toolwarden/watch/scan/v1",
        checks: vec![ReportCheck {
            name: "text".to_owned(),
            basis: None,
            rejected,
            outcome: "with findings",
            tools: seen.len(),
            failing: &[FindingLevel::Error],
        }],
        subjects: seen
            .iter()
            .map(|tool| report::Subject::of(&tool.observation.name))
            .collect(),
        findings: rows,
    }
}
