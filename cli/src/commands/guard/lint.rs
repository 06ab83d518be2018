use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolwarden_guard::{LintRule, PolicyError, lint};
use toolwarden_live_guard::{LoadedPolicy, PolicyFileError};
use toolwarden_model::json::{Pointer, Position};

use super::policy;
use super::policy_location::PolicyLocation;
use crate::args::{GuardLintArgs, ReportFormat};
use crate::command_outcome::CommandOutcome;
use crate::error::{CliError, GuardError};
use crate::output::print_text;
use crate::report::{
    FindingDetail, FindingLevel, FindingReport, ReportCheck, ReportFinding, RuleInfo, Subject,
};

pub(super) fn run(args: &GuardLintArgs) -> Result<CommandOutcome, CliError> {
    if args.rules {
        return print_rules(args.format);
    }
    let location = PolicyLocation::find(&args.policy)?;
    let file = location.path().display().to_string();
    let loaded = match policy::load(&location) {
        // A report that is read by a machine has to be one.
        Err(CliError::Guard(GuardError::Policy(PolicyFileError::Invalid { errors, path })))
            if args.format != ReportFormat::Text =>
        {
            print_text(&mistakes(&errors, &file).render(args.format))?;
            return Err(GuardError::Policy(PolicyFileError::Invalid { errors, path }).into());
        }
        loaded => loaded?,
    };
    let report = report(&loaded, &location, &file);
    let found = report
        .findings
        .iter()
        .any(|it| FAILING_LEVELS.contains(&it.level));
    print_text(&report.render(args.format))?;
    Ok(CommandOutcome::from_finding(found))
}

/// Lists all rules; reports about files have formats that a list of rules does not have.
fn print_rules(format: ReportFormat) -> Result<CommandOutcome, CliError> {
    let rules = LintRule::ALL
        .iter()
        .map(|rule| (rule.as_str(), rule.description()));
    let rules = rules.chain([(
        SURPRISING.id,
        "an empty list or a `*` that means less than it looks",
    )]);
    print_text(&match format {
        ReportFormat::Text => rules
            .map(|(id, finds)| format!("{id:<20} {finds}\n"))
            .collect::<String>(),
        ReportFormat::Json => {
            let rules: Vec<Value> = rules
                .map(|(id, finds)| json!({"id": id, "finds": finds}))
                .collect();
            let document = json!({"schema": "toolwarden/guard/rules/v1", "rules": rules});
            format!("{document:#}\n")
        }
        ReportFormat::Sarif
        | ReportFormat::Junit
        | ReportFormat::Github
        | ReportFormat::Markdown => {
            return Err(CliError::Contradiction {
                one: "--rules".to_owned(),
                other: "--format of a report".to_owned(),
            });
        }
    })?;
    Ok(CommandOutcome::Pass)
}

/// What makes the command fail.
const FAILING_LEVELS: &[FindingLevel] = &[FindingLevel::Error, FindingLevel::Warning];

/// What reading a policy warns about.
const SURPRISING: RuleInfo = RuleInfo {
    id: "surprising",
    finds: "A rule of the policy has an effect that is easily overlooked.",
    help: "Change the rule, or leave it if the effect is meant.",
};

/// What makes a policy unusable.
const MISTAKE: RuleInfo = RuleInfo {
    id: "mistake",
    finds: "The policy has a mistake, and no call is decided by it.",
    help: "Correct the line; `toolwarden guard explain` shows what a policy means for a tool.",
};

/// The mistakes for which a policy is not used.
fn mistakes(errors: &[PolicyError], file: &str) -> FindingReport {
    let findings = errors.iter().map(|error| {
        let position = error.position.unwrap_or(Position { line: 1, column: 1 });
        ReportFinding {
            check: "policy".to_owned(),
            rule: MISTAKE.id,
            level: FindingLevel::Error,
            tool: subject(&error.pointer),
            message: error.problem.to_string(),
            file: file.to_owned(),
            line: position.line,
            column: position.column,
            pointer: error.pointer.to_string(),
            fixable: false,
            detail: FindingDetail {
                rule_info: Some(MISTAKE),
                ..FindingDetail::default()
            },
        }
    });
    FindingReport {
        schema: "toolwarden/guard/lint/v1",
        checks: vec![ReportCheck {
            name: "policy".to_owned(),
            basis: None,
            rejected: errors.len(),
            outcome: "with findings",
            tools: errors.len(),
            failing: FAILING_LEVELS,
        }],
        subjects: Vec::new(),
        findings: findings.collect(),
    }
}

/// What a place belongs to: a tool, a principal, a role, a group, or the policy as a whole.
fn subject(pointer: &Pointer) -> String {
    pointer
        .segments()
        .nth(1)
        .unwrap_or_else(|| "policy".to_owned())
}

fn report(loaded: &LoadedPolicy, location: &PolicyLocation, file: &str) -> FindingReport {
    let mut findings = Vec::new();
    let warnings = loaded.warnings.iter().map(|it| {
        let message = it.message.clone();
        (
            SURPRISING,
            FindingLevel::Warning,
            it.pointer.clone(),
            message,
        )
    });
    let found = lint(&loaded.policy).into_iter().map(|it| {
        let level = FindingLevel::from(it.severity);
        let about = RuleInfo {
            id: it.rule.as_str(),
            finds: it.rule.description(),
            help: "Change the rule of the policy; docs/guard.md describes what each rule finds.",
        };
        (about, level, it.pointer, it.message)
    });
    for (about, level, pointer, message) in warnings.chain(found) {
        let position = location.position(loaded, &pointer);
        findings.push(ReportFinding {
            check: "policy".to_owned(),
            rule: about.id,
            level,
            tool: subject(&pointer),
            message,
            file: file.to_owned(),
            line: position.line,
            column: position.column,
            pointer: pointer.to_string(),
            fixable: false,
            detail: FindingDetail {
                rule_info: Some(about),
                ..FindingDetail::default()
            },
        });
    }
    findings.sort_by_key(|it| (it.line, it.column));
    let loud = findings.iter().filter(|it| it.level != FindingLevel::Note);
    let loud: BTreeSet<&str> = loud
        .filter(|it| it.pointer.starts_with("/tools/"))
        .map(|it| it.tool.as_str())
        .collect();
    let rejected = loud.len();
    FindingReport {
        schema: "toolwarden/guard/lint/v1",
        checks: vec![ReportCheck {
            name: "policy".to_owned(),
            basis: None,
            rejected,
            outcome: "with findings",
            tools: loaded.policy.tools.len(),
            failing: FAILING_LEVELS,
        }],
        subjects: loaded
            .policy
            .tools
            .iter()
            .map(|it| Subject::of(&it.name))
            .collect(),
        findings,
    }
}
