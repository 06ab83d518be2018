use std::collections::BTreeSet;

use toolwarden_guard::{LintRule, LintSeverity, lint};
use toolwarden_warden::guard::LoadedPolicy;

use super::policy;
use crate::args::GuardLintArgs;
use crate::error::CliError;
use crate::output::{Verdict, print};
use crate::report::{Check, Finding, Level, Report};

pub(super) fn run(args: &GuardLintArgs) -> Result<Verdict, CliError> {
    if args.rules {
        let rules = LintRule::ALL.iter();
        let lines = rules.map(|rule| format!("{:<20} {}\n", rule.as_str(), rule.description()));
        print(&lines.collect::<String>())?;
        return Ok(Verdict::Fine);
    }
    let loaded = policy::load(&args.policy.policy)?;
    let report = report(&loaded, &args.policy.policy.display().to_string());
    let found = report.findings.iter().any(|it| it.level != Level::Note);
    print(&report.render(args.format))?;
    Ok(Verdict::of(found))
}

fn report(loaded: &LoadedPolicy, file: &str) -> Report {
    let mut findings = Vec::new();
    let warnings = loaded.warnings.iter().map(|it| {
        let message = it.message.clone();
        ("surprising", Level::Warning, it.pointer.clone(), message)
    });
    let found = lint(&loaded.policy).into_iter().map(|it| {
        let level = match it.severity {
            LintSeverity::Error => Level::Error,
            LintSeverity::Warning => Level::Warning,
            LintSeverity::Note => Level::Note,
        };
        (it.rule.as_str(), level, it.pointer, it.message)
    });
    for (rule, level, pointer, message) in warnings.chain(found) {
        let position = loaded.document.position(&pointer);
        findings.push(Finding {
            check: "policy".to_owned(),
            rule,
            level,
            tool: pointer.segments().nth(1).unwrap_or_default(),
            message,
            file: file.to_owned(),
            line: position.line,
            column: position.column,
            pointer: pointer.to_string(),
            fixable: false,
        });
    }
    findings.sort_by_key(|it| (it.line, it.column));
    let loud = findings.iter().filter(|it| it.level != Level::Note);
    let loud: BTreeSet<&str> = loud
        .filter(|it| it.pointer.starts_with("/tools/"))
        .map(|it| it.tool.as_str())
        .collect();
    let rejected = loud.len();
    Report {
        schema: "toolwarden/guard/lint/v1",
        checks: vec![Check {
            name: "policy".to_owned(),
            basis: None,
            rejected,
            outcome: "with findings",
            tools: loaded.policy.tools.len(),
        }],
        subjects: loaded
            .policy
            .tools
            .iter()
            .map(|it| it.name.clone())
            .collect(),
        findings,
    }
}
