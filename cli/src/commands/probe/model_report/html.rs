//! The page as HTML: one file, no scripts, nothing loaded from elsewhere.

use std::fmt::Write as _;

use super::page::{
    CaseRow, Evidence, Finding, ModelColumn, ModelDecision, ModelReport, ToolCell, count,
    milliseconds, money, percent, rate_text, tokens,
};
use crate::style::escape_controls;
use toolwarden_model::Severity;

const CSS: &str = include_str!("page.css");

pub(super) fn html(report: &ModelReport) -> String {
    let mut out = String::new();
    let suite = escape(&report.suite);
    out.push_str(&format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>Which models can run {suite}?</title>\n<style>\n{CSS}</style>\n</head>\n<body>\n<main>\n"
    ));
    out.push_str(&head(report));
    out.push_str(&heat_map(report));
    out.push_str(&breakage(report));
    out.push_str(&costs(report));
    out.push_str(&cases(report));
    out.push_str(&method(report));
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn head(report: &ModelReport) -> String {
    let mut out = format!(
        "<h1>Which models can run <q>{}</q>?</h1>\n<p class=\"soft\">Tool calls of {} on {} tools, measured and compared. Made {}.</p>\n<ul class=\"cards\">\n",
        escape(&report.suite),
        count(report.models.len(), "model"),
        report.tools.len(),
        escape(&report.made_at)
    );
    for model in &report.models {
        let role = if model.is_baseline {
            " · in use now"
        } else {
            ""
        };
        out.push_str(&format!(
            "<li class=\"card {}\"><h3>{}{role}</h3><strong>{} {}</strong><span class=\"soft\">{}</span></li>\n",
            class(model.decision),
            escape(&model.label),
            model.decision.sign(),
            title(model.decision),
            escape(&model.reason)
        ));
    }
    out.push_str("</ul>\n");
    out
}

fn heat_map(report: &ModelReport) -> String {
    let mut out = String::from(
        "<h2>Tool by tool</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">tool</th>",
    );
    for model in &report.models {
        out.push_str(&format!("<th scope=\"col\">{}</th>", escape(&model.label)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (at, tool) in report.tools.iter().enumerate() {
        out.push_str(&format!(
            "<tr><th scope=\"row\"><code>{}</code></th>",
            escape(tool)
        ));
        for model in &report.models {
            out.push_str(&model.tools.get(at).map(cell).unwrap_or_default());
        }
        out.push_str("</tr>\n");
    }
    out.push_str("<tr><th scope=\"row\">replies as a whole</th>");
    for model in &report.models {
        out.push_str(&format!(
            "<td class=\"heat {}\"><span class=\"word\">{} {}</span><span class=\"soft number\">{} of {} trials measured</span></td>",
            class(model.replies),
            model.replies.sign(),
            model.replies.as_str(),
            model.measured,
            model.planned
        ));
    }
    out.push_str(
        "</tr>\n</tbody>\n</table></div>\n<p class=\"soft\">Each rate has its count and, from two trials on, its 95 % interval. A cell is never greener than <code>probe run</code>.</p>\n",
    );
    out
}

fn cell(cell: &ToolCell) -> String {
    let mut out = format!(
        "<td class=\"heat {}\"><span class=\"word\">{} {}</span>",
        class(cell.decision),
        cell.decision.sign(),
        cell.decision.as_str()
    );
    if let Some(share) = cell.called.share() {
        // Writing to a string cannot fail.
        write!(
            out,
            "<div class=\"bar\"><i style=\"width:{:.0}%\"></i></div>",
            share * 100.0
        )
        .unwrap_or_default();
    }
    let rows = [("called in", cell.called), ("valid in", cell.valid)];
    for (what, rate) in rows {
        let text = match rate.of {
            0 if what == "called in" => "never asked for".to_owned(),
            0 => "no calls to check".to_owned(),
            _ => format!("{what} {}", rate_text(rate)),
        };
        out.push_str(&format!("<div class=\"soft number\">{text}</div>"));
    }
    let found = [(cell.breaking, "breaking"), (cell.warnings, "warning")];
    for (number, word) in found.into_iter().filter(|it| it.0 > 0) {
        let text = if word == "warning" {
            count(number, word)
        } else {
            format!("{number} {word}")
        };
        out.push_str(&format!("<div class=\"soft\">{text}</div>"));
    }
    out.push_str("</td>");
    out
}

fn breakage(report: &ModelReport) -> String {
    let mut out = String::from("<h2>What breaks</h2>\n");
    let mut is_empty = true;
    for model in report.models.iter().filter(|it| !it.findings.is_empty()) {
        is_empty = false;
        out.push_str(&format!("<h3>{}</h3>\n", escape(&model.label)));
        for finding in &model.findings {
            out.push_str(&finding_block(finding));
        }
        if model.more_findings > 0 {
            out.push_str(&format!("<p>and {} more</p>\n", model.more_findings));
        }
    }
    if is_empty {
        out.push_str("<p>Nothing that was measured breaks callers or warns.</p>\n");
    }
    out
}

fn finding_block(finding: &Finding) -> String {
    let (name, class) = match finding.severity {
        Severity::Breaking => ("breaking", "no-go"),
        Severity::Warning => ("warning", "not-known"),
        Severity::Info => ("info", "baseline"),
    };
    let tool = finding.tool.as_deref().map_or_else(
        || "replies".to_owned(),
        |tool| format!("<code>{}</code>", escape(tool)),
    );
    let mut out = format!(
        "<div class=\"finding\"><p><span class=\"tag {class}\">{name}</span> {tool} · <code>{}</code> <code>{}</code></p>\n\
         <p class=\"change\"><code>{}</code> → <code>{}</code> <span class=\"soft\">against {}</span></p>\n<p>{}</p>\n",
        escape(&finding.field),
        escape(&finding.pointer),
        escape(&finding.before),
        escape(&finding.after),
        escape(&finding.against),
        escape(&finding.note)
    );
    if let Some(evidence) = &finding.evidence {
        out.push_str(&evidence_block(evidence, finding.severity));
    }
    out.push_str("</div>\n");
    out
}

fn evidence_block(evidence: &Evidence, severity: Severity) -> String {
    // Closed parts are not printed, so that what breaks stays open.
    let open = if severity == Severity::Breaking {
        " open"
    } else {
        ""
    };
    let cut = if evidence.is_cut {
        " · a part of the body"
    } else {
        ""
    };
    format!(
        "<details{open}><summary>the bytes: case {} · {} · repetition {} · HTTP {}{cut}</summary><pre>{}</pre></details>\n",
        escape(&evidence.case),
        evidence.mode,
        evidence.repetition,
        evidence.status,
        escape_body(&evidence.text)
    )
}

fn costs(report: &ModelReport) -> String {
    let mut out = String::from(
        "<h2>Time, tokens and price</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">model</th><th scope=\"col\">median</th><th scope=\"col\">95 % within</th><th scope=\"col\">tokens in</th><th scope=\"col\">tokens out</th><th scope=\"col\">1000 replies cost</th></tr></thead>\n<tbody>\n",
    );
    for model in &report.models {
        out.push_str(&format!(
            "<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>\n",
            escape(&model.label),
            milliseconds(model.p50_ms),
            milliseconds(model.p95_ms),
            tokens(model.input_tokens),
            tokens(model.output_tokens),
            escape(&money(model.cost.as_ref()))
        ));
    }
    out.push_str(&format!(
        "</tbody>\n</table></div>\n<p class=\"soft\">Tokens are the average of one reply, as the provider reports them. List prices of {}, from {}; check them with the vendor. – means not reported or not in the table.</p>\n",
        escape(&report.prices_as_of),
        escape(&report.prices_source)
    ));
    out
}

fn cases(report: &ModelReport) -> String {
    let mut out = String::from(
        "<h2>Case by case</h2>\n<details><summary>how often each model did what the case expects</summary>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">case</th>",
    );
    for model in &report.models {
        out.push_str(&format!("<th scope=\"col\">{}</th>", escape(&model.label)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    let names: std::collections::BTreeSet<&String> = report
        .models
        .iter()
        .flat_map(|it| it.cases.iter().map(|case| &case.name))
        .collect();
    for name in names {
        out.push_str(&format!("<tr><th scope=\"row\">{}</th>", escape(name)));
        for model in &report.models {
            let case = model.cases.iter().find(|it| it.name == *name);
            out.push_str(&format!("<td class=\"number\">{}</td>", case_text(case)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n</details>\n");
    out
}

pub(super) fn case_text(case: Option<&CaseRow>) -> String {
    match case {
        Some(case) if case.met.of > 0 => rate_text(case.met),
        Some(case) if case.planned > 0 => "not measured".to_owned(),
        _ => "not reached".to_owned(),
    }
}

fn method(report: &ModelReport) -> String {
    let pins = if report.is_pinned {
        " and with the pins of the contract"
    } else {
        ""
    };
    let mut out = format!(
        "<h2>How this was made</h2>\n<pre>{}</pre>\n<p>Every model is checked against the suite{pins}. Every model after the first is compared with the first, as <code>toolwarden probe run --old {} --new MODEL</code> compares them; a drop of up to {} is allowed. A fault that breaks callers makes a model a no-go. Where the trials do not decide, the page says <em>not known</em>.</p>\n<dl>\n",
        escape(&report.command),
        report
            .models
            .first()
            .map(|it| escape(&it.label))
            .unwrap_or_default(),
        percent(report.allowed_drop)
    );
    for model in &report.models {
        out.push_str(&format!(
            "<dt>{}</dt><dd>{}</dd>\n",
            escape(&model.label),
            escape(&facts(model))
        ));
    }
    out.push_str(&format!(
        "<dt>program</dt><dd>toolwarden {}</dd>\n</dl>\n",
        env!("CARGO_PKG_VERSION")
    ));
    out
}

/// Where and when a model was asked, and what answered.
pub(super) fn facts(model: &ModelColumn) -> String {
    let mut facts = vec![
        model
            .at
            .clone()
            .unwrap_or_else(|| "from recorded answers".to_owned()),
        format!("wire {}", model.wire),
        format!("{} of {} trials measured", model.measured, model.planned),
    ];
    if !model.answered_by.is_empty() {
        facts.push(format!("answered by {}", model.answered_by.join(", ")));
    }
    let failures = model.failures.iter();
    facts.extend(failures.map(|(word, number)| format!("{number} × {word}")));
    facts.join(" · ")
}

pub(super) const fn title(decision: ModelDecision) -> &'static str {
    match decision {
        ModelDecision::Baseline => "Baseline",
        ModelDecision::Go => "Go",
        ModelDecision::NotKnown => "Not known",
        ModelDecision::NoGo => "No-go",
    }
}

const fn class(decision: ModelDecision) -> &'static str {
    match decision {
        ModelDecision::Baseline => "baseline",
        ModelDecision::Go => "go",
        ModelDecision::NotKnown => "not-known",
        ModelDecision::NoGo => "no-go",
    }
}

/// Text from outside: never markup, and without characters that hide or reorder what is shown.
fn escape(text: &str) -> String {
    escape_markup(&escape_controls(text))
}

/// Bytes of an answer, with their line breaks.
fn escape_body(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(escape).collect();
    lines.join("\n")
}

fn escape_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for it in text.chars() {
        match it {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            it => out.push(it),
        }
    }
    out
}
