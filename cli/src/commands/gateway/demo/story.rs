//! The script of the demo.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::time::timeout;
use toolwarden_gateway::demo::{drifted_tools, tools};
use toolwarden_warden::Selection;
use toolwarden_warden::inline::{Approving, RaisedNotice};

use super::agent::{Agent, Outcome};
use super::stage::{AGENT, SERVER, Stage};
use super::teller::{Line, Teller};
use super::{PATIENCE, astray};
use crate::error::CliError;

type Alerts = Receiver<std::sync::Arc<RaisedNotice>>;

/// The tool that drifts.
const REFUND: &str = "refund_order";

/// Plays the whole script.
pub(super) async fn tell(stage: &Stage, teller: &mut Teller) -> Result<(), CliError> {
    let mut alerts = stage.running.gateway.watch().subscribe_alerts();
    let agent = Agent::connect(&stage.url()).await?;
    list(&agent, teller).await?;
    allowed(&agent, teller).await?;
    denied(&agent, teller).await?;
    drift(stage, &agent, &mut alerts, teller).await?;
    approve(stage, &agent, &mut alerts, teller).await?;
    agent.close().await;
    let records = stage.records().await?;
    let intact = format!("{records} records, each with the digest of the one before: intact");
    teller.step(
        ("audit", "Every decision and every result is on record"),
        &[Line::Good(intact)],
        json!({"records": records, "intact": true}),
    )
}

async fn list(agent: &Agent, teller: &mut Teller) -> Result<(), CliError> {
    let names = agent.tools().await?;
    let all = tools();
    let all = all.iter().filter_map(|it| it.get("name")?.as_str());
    let hidden: Vec<&str> = all
        .filter(|it| !names.iter().any(|name| name == it))
        .collect();
    let lines = [
        Line::Good(names.join(", ")),
        Line::Says(format!(
            "not shown: {}; the policy keeps it for managers",
            hidden.join(", ")
        )),
    ];
    let facts = json!({"principal": AGENT, "tools": names, "hidden": hidden});
    teller.step(
        ("list", "An agent lists the tools of a shop"),
        &lines,
        facts,
    )
}

async fn allowed(agent: &Agent, teller: &mut Teller) -> Result<(), CliError> {
    let made = Call::new("search_orders", json!({"customer": "Bayard"}));
    let result = made.succeed(agent).await?;
    let lines = [made.line(), Line::Good(result.to_string())];
    teller.step(
        ("allowed", "A call that is allowed"),
        &lines,
        json!({"tool": made.tool, "arguments": made.arguments, "result": result}),
    )
}

async fn denied(agent: &Agent, teller: &mut Teller) -> Result<(), CliError> {
    let mut lines = Vec::new();
    let mut facts = Vec::new();
    for made in [
        Call::new("cancel_order", json!({"order_id": "A-1003"})),
        Call::new(REFUND, json!({"order_id": "A-1001", "amount": -20})),
    ] {
        let refusal = made.fail(agent).await?;
        lines.push(made.line());
        lines.extend(refusal.lines());
        facts.push(refusal.facts(&made));
    }
    teller.step(
        (
            "denied",
            "Calls that are denied before the server sees them",
        ),
        &lines,
        json!({"calls": facts}),
    )
}

async fn drift(
    stage: &Stage,
    agent: &Agent,
    alerts: &mut Alerts,
    teller: &mut Teller,
) -> Result<(), CliError> {
    stage.offer(&drifted_tools());
    let alert = next(alerts).await?;
    let names = listed(agent, |names| !names.contains(&REFUND)).await?;
    let made = Call::new(
        REFUND,
        json!({"order_id": "A-1001", "amount": 20, "reason": "late"}),
    );
    let refusal = made.fail(agent).await?;
    let mut lines = told(&alert);
    lines.push(Line::Good(format!("tools shown now: {}", names.join(", "))));
    lines.push(made.line());
    lines.extend(refusal.lines());
    let facts = json!({
        "alert": facts(&alert),
        "tools": names,
        "call": refusal.facts(&made),
    });
    let title = "Overnight the server hides an instruction to the model in refund_order";
    teller.step(("drift", title), &lines, facts)
}

async fn approve(
    stage: &Stage,
    agent: &Agent,
    alerts: &mut Alerts,
    teller: &mut Teller,
) -> Result<(), CliError> {
    stage.offer(&mended_tools());
    let alert = next(alerts).await?;
    let mut lines = told(&alert);
    let approving = Approving {
        server: Some(SERVER.to_owned()),
        selection: Selection {
            tools: vec![REFUND.to_owned()],
            ..Selection::default()
        },
        by: "you".to_owned(),
        why: Some("refunds up to 100 with a reason are fine".to_owned()),
        scope: None,
    };
    let approved = stage.running.gateway.watch().approve(approving).await;
    approved.map_err(|error| astray(format!("the change could not be approved: {error}")))?;
    lines.push(Line::Does(format!(
        "you: toolwarden watch approve --server {SERVER} --tool {REFUND}"
    )));
    let names = listed(agent, |names| names.contains(&REFUND)).await?;
    lines.push(Line::Good(format!("tools shown now: {}", names.join(", "))));
    let made = Call::new(
        REFUND,
        json!({"order_id": "A-1001", "amount": 20, "reason": "late"}),
    );
    let result = made.succeed(agent).await?;
    lines.push(made.line());
    lines.push(Line::Good(result.to_string()));
    let facts = json!({
        "alert": facts(&alert),
        "approved": REFUND,
        "tools": names,
        "call": {"tool": made.tool, "arguments": made.arguments, "result": result},
    });
    let title = "It takes the instruction out; its new rules are reviewed and approved";
    teller.step(("approve", title), &lines, facts)
}

/// The tools of which one takes less than before, and says nothing else.
fn mended_tools() -> Vec<Value> {
    let mut mended = drifted_tools();
    for (tool, before) in mended.iter_mut().zip(tools()) {
        if let (Some(said), Some(before)) = (tool.get_mut("description"), before.get("description"))
        {
            said.clone_from(before);
        }
    }
    mended
}

/// A call the agent makes.
struct Call {
    tool: &'static str,
    arguments: Value,
}

/// Why a call was refused.
struct Refusal {
    code: String,
    reason: String,
    advice: String,
}

impl Call {
    const fn new(tool: &'static str, arguments: Value) -> Self {
        Self { tool, arguments }
    }

    fn line(&self) -> Line {
        Line::Does(format!("agent: {} {}", self.tool, self.arguments))
    }

    async fn succeed(&self, agent: &Agent) -> Result<Value, CliError> {
        match agent.call(self.tool, &self.arguments).await? {
            Outcome::Result(result) => Ok(result),
            Outcome::Denied { reason, .. } => {
                Err(astray(format!("{} was denied: {reason}", self.tool)))
            }
        }
    }

    async fn fail(&self, agent: &Agent) -> Result<Refusal, CliError> {
        match agent.call(self.tool, &self.arguments).await? {
            Outcome::Result(_) => Err(astray(format!("{} was not denied", self.tool))),
            Outcome::Denied {
                code,
                reason,
                advice,
            } => Ok(Refusal {
                code,
                reason,
                advice,
            }),
        }
    }
}

impl Refusal {
    fn lines(&self) -> [Line; 2] {
        let advice = format!("the model reads: {}", self.advice);
        [Line::Bad(self.reason.clone()), Line::Says(advice)]
    }

    fn facts(&self, made: &Call) -> Value {
        json!({
            "tool": made.tool,
            "arguments": made.arguments,
            "code": self.code,
            "reason": self.reason,
            "advice": self.advice,
        })
    }
}

/// The next alert about the tool that drifts.
async fn next(alerts: &mut Alerts) -> Result<RaisedNotice, CliError> {
    let wait = async {
        loop {
            match alerts.recv().await {
                Ok(alert) if alert.tool == REFUND => return Ok((*alert).clone()),
                Ok(_) => {}
                Err(_) => return Err(astray("the watch ended")),
            }
        }
    };
    let heard = timeout(PATIENCE, wait).await;
    heard.unwrap_or_else(|_| Err(astray("nobody was told of the drift")))
}

/// The list of tools as soon as it is as it should be.
async fn listed(agent: &Agent, fits: impl Fn(&[&str]) -> bool) -> Result<Vec<String>, CliError> {
    let begun = Instant::now();
    loop {
        let names = agent.tools().await?;
        let shown: Vec<&str> = names.iter().map(String::as_str).collect();
        if fits(&shown) {
            return Ok(names);
        }
        if begun.elapsed() > PATIENCE {
            return Err(astray(format!("the list of tools stayed {names:?}")));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// An alert in lines: its class, what changed, and the value that proves it.
fn told(alert: &RaisedNotice) -> Vec<Line> {
    let mut lines = vec![Line::Does(format!(
        "alert: {} drifted, {}, severity {}",
        alert.tool,
        alert.class.as_str(),
        alert.severity.as_str()
    ))];
    let changes = alert.drift.get("changes").and_then(Value::as_array);
    for change in changes.into_iter().flatten() {
        let word = |key: &str| change.get(key).and_then(Value::as_str).unwrap_or_default();
        lines.push(Line::Says(format!(
            "{}: {}",
            word("class"),
            word("message")
        )));
        let reasons = change.get("reasons").and_then(Value::as_array);
        for reason in reasons.into_iter().flatten().take(3) {
            let word = |key: &str| reason.get(key).and_then(Value::as_str).unwrap_or_default();
            lines.push(Line::Says(format!(
                "  {}: {}",
                word("detector"),
                word("message")
            )));
        }
    }
    if let Some(value) = witness(alert) {
        lines.push(Line::Says(format!("valid before, rejected now: {value}")));
    }
    lines
}

fn facts(alert: &RaisedNotice) -> Value {
    json!({
        "tool": alert.tool,
        "class": alert.class.as_str(),
        "severity": alert.severity.as_str(),
        "summary": alert.summary,
        "witness": witness(alert),
    })
}

fn witness(alert: &RaisedNotice) -> Option<&Value> {
    alert.drift.pointer("/input/declared/witness/value")
}
