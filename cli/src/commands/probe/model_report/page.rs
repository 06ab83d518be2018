//! What the page says, in every format.

use toolwarden_model::Severity;
use toolwarden_trials::{Confidence, Rate, wilson};

/// Whether a model can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ModelDecision {
    /// What the others are compared with; nothing is known to be wrong with it.
    Baseline,
    /// Nothing breaks, as far as the trials show.
    Go,
    /// The trials do not decide, or there are none.
    NotKnown,
    /// Something breaks.
    NoGo,
}

impl ModelDecision {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Go => "go",
            Self::NotKnown => "not known",
            Self::NoGo => "no-go",
        }
    }

    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Baseline => "●",
            Self::Go => "✓",
            Self::NotKnown => "?",
            Self::NoGo => "✗",
        }
    }
}

/// The whole page.
#[derive(Debug)]
pub(super) struct ModelReport {
    pub(super) suite: String,
    pub(super) command: String,
    pub(super) made_at: String,
    /// Whether a contract pins what is expected.
    pub(super) is_pinned: bool,
    pub(super) allowed_drop: f64,
    pub(super) tools: Vec<String>,
    pub(super) models: Vec<ModelColumn>,
    pub(super) prices_as_of: String,
    pub(super) prices_source: String,
}

/// One model.
#[derive(Debug)]
pub(super) struct ModelColumn {
    pub(super) label: String,
    pub(super) at: Option<String>,
    pub(super) wire: &'static str,
    /// The models that answered, as they named themselves.
    pub(super) answered_by: Vec<String>,
    pub(super) is_baseline: bool,
    pub(super) decision: ModelDecision,
    pub(super) reason: String,
    pub(super) planned: u64,
    pub(super) measured: u64,
    pub(super) failures: Vec<(String, u64)>,
    /// The cells, in the order of the tools of the report.
    pub(super) tools: Vec<ToolCell>,
    /// What is not about one tool.
    pub(super) replies: ModelDecision,
    pub(super) cases: Vec<CaseRow>,
    pub(super) findings: Vec<Finding>,
    /// How many findings of no greater severity are not listed.
    pub(super) more_findings: usize,
    pub(super) p50_ms: Option<f64>,
    pub(super) p95_ms: Option<f64>,
    pub(super) input_tokens: Option<f64>,
    pub(super) output_tokens: Option<f64>,
    /// What a thousand replies cost, with the currency.
    pub(super) cost: Option<(f64, String)>,
}

/// One tool of one model.
#[derive(Debug)]
pub(super) struct ToolCell {
    pub(super) decision: ModelDecision,
    /// In how many trials that ask for it the tool was called.
    pub(super) called: Rate,
    /// How many calls had arguments that fit the schema.
    pub(super) valid: Rate,
    pub(super) warnings: usize,
    pub(super) breaking: usize,
}

/// The outcome of one case.
#[derive(Debug)]
pub(super) struct CaseRow {
    pub(super) name: String,
    pub(super) met: Rate,
    pub(super) planned: u64,
}

/// Something that breaks or may break.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) tool: Option<String>,
    pub(super) severity: Severity,
    pub(super) field: String,
    pub(super) pointer: String,
    pub(super) before: String,
    pub(super) after: String,
    pub(super) note: String,
    /// What the model is compared with.
    pub(super) against: String,
    pub(super) evidence: Option<Evidence>,
}

/// Bytes of an answer that show a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    pub(super) case: String,
    pub(super) mode: &'static str,
    pub(super) repetition: u32,
    pub(super) status: u16,
    /// A part of the body as received.
    pub(super) text: String,
    /// Whether the body continues before or after it.
    pub(super) is_cut: bool,
}

/// A rate with its interval. One trial is not a rate.
pub(super) fn rate_text(rate: Rate) -> String {
    let Some(share) = rate.share() else {
        return "none".to_owned();
    };
    if rate.of == 1 {
        return format!("{rate}");
    }
    let interval = wilson(rate, Confidence::P95);
    format!(
        "{rate} · {} ({}–{})",
        percent(share),
        percent_number(interval.lower),
        percent(interval.upper)
    )
}

/// A share in percent. Only a whole is shown as 100 %, and only nothing as 0 %.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", percent_number(share))
}

fn percent_number(share: f64) -> String {
    let rounded = (share * 100.0).round();
    if rounded >= 100.0 && share < 1.0 {
        return "99.9".to_owned();
    }
    if rounded <= 0.0 && share > 0.0 {
        return "0.1".to_owned();
    }
    format!("{rounded:.0}")
}

/// A time for a reader.
pub(super) fn milliseconds(time: Option<f64>) -> String {
    match time {
        None => "–".to_owned(),
        Some(time) if time >= 1_000.0 => format!("{:.1} s", time / 1_000.0),
        Some(time) => format!("{time:.0} ms"),
    }
}

/// A number of tokens for a reader.
pub(super) fn tokens(count: Option<f64>) -> String {
    count.map_or_else(|| "–".to_owned(), |it| format!("{it:.0}"))
}

/// An amount of money for a reader.
pub(super) fn money(cost: Option<&(f64, String)>) -> String {
    cost.map_or_else(
        || "–".to_owned(),
        |(amount, currency)| match *amount {
            amount if amount >= 1.0 => format!("{amount:.2} {currency}"),
            amount => format!("{amount:.4} {currency}"),
        },
    )
}

impl ModelReport {
    /// The worst decision of all models that are compared.
    pub(super) fn overall(&self) -> ModelDecision {
        let decisions = self.models.iter().map(|it| it.decision);
        decisions.max().unwrap_or(ModelDecision::NotKnown)
    }
}

/// A number of things.
pub(super) fn count(number: impl std::fmt::Display, what: &str) -> String {
    match number.to_string().as_str() {
        "1" => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}
