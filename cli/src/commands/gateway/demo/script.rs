//! The script of the demo.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::time::timeout;
use toolwarden_demo::{drifted_tools, tools};
use toolwarden_drift::ToolwatchSeverity;
use toolwarden_watch::ApprovalSelection;
use toolwarden_watch::inline::{ApprovalRequest, WatchAlert};

use super::agent::{DemoAgent, DemoCallOutcome};
use super::environment::{AGENT, DemoEnvironment, SERVER};
use super::step_printer::{StepLine, StepPrinter};
use super::{STEP_TIMEOUT, demo_error};
use crate::error::CliError;

type Alerts = Receiver<std::sync::Arc<WatchAlert>>;

/// The tool that drifts.
const REFUND: &str = "refund_order";

/// Plays the whole script.
pub(super) async fn run_script(
    stage: &DemoEnvironment,
    teller: &mut StepPrinter,
) -> Result<(), CliError> {
    let mut alerts = stage.running.gateway.watch().subscribe_alerts();
    let agent = DemoAgent::connect(&stage.url()).await?;
    list_tools(&agent, teller).await?;
    call_allowed_tool(&agent, teller).await?;
    call_denied_tool(&agent, teller).await?;
    change_tool(stage, &agent, &mut alerts, teller).await?;
    approve_change(stage, &agent, &mut alerts, teller).await?;
    agent.close().await;
    let records = stage.verify_log().await?;
    let intact = format!("{records} records in the audit log, hash chain intact");
    teller.print_step(
        ("audit", "Every decision and every outcome is recorded"),
        &[StepLine::Good(intact)],
        json!({"records": records, "intact": true}),
    )
}

async fn list_tools(agent: &DemoAgent, teller: &mut StepPrinter) -> Result<(), CliError> {
    let names = agent.tools().await?;
    let all = tools();
    let all = all.iter().filter_map(|it| it.get("name")?.as_str());
    let hidden: Vec<&str> = all
        .filter(|it| !names.iter().any(|name| name == it))
        .collect();
    let lines = [
        StepLine::Good(names.join(", ")),
        StepLine::Note(format!(
            "not shown: {}; the policy reserves it for managers",
            hidden.join(", ")
        )),
    ];
    let facts = json!({"principal": AGENT, "tools": names, "hidden": hidden});
    teller.print_step(
        ("list", "An agent lists the tools of a shop"),
        &lines,
        facts,
    )
}

async fn call_allowed_tool(agent: &DemoAgent, teller: &mut StepPrinter) -> Result<(), CliError> {
    let made = ScriptCall::new("search_orders", json!({"customer": "Bayard"}));
    let result = made.expect_result(agent).await?;
    let lines = [made.line(), StepLine::Good(result.to_string())];
    teller.print_step(
        ("allowed", "A call that is allowed"),
        &lines,
        json!({"tool": made.tool, "arguments": made.arguments, "result": result}),
    )
}

async fn call_denied_tool(agent: &DemoAgent, teller: &mut StepPrinter) -> Result<(), CliError> {
    let mut lines = Vec::new();
    let mut facts = Vec::new();
    for made in [
        ScriptCall::new("cancel_order", json!({"order_id": "A-1003"})),
        ScriptCall::new(REFUND, json!({"order_id": "A-1001", "amount": -20})),
    ] {
        let refusal = made.expect_denial(agent).await?;
        lines.push(made.line());
        lines.extend(refusal.lines());
        facts.push(refusal.facts(&made));
    }
    teller.print_step(
        (
            "denied",
            "Calls that are denied before the server sees them",
        ),
        &lines,
        json!({"calls": facts}),
    )
}

async fn change_tool(
    stage: &DemoEnvironment,
    agent: &DemoAgent,
    alerts: &mut Alerts,
    teller: &mut StepPrinter,
) -> Result<(), CliError> {
    stage.replace_tools(&drifted_tools());
    let alert = next_alert(alerts).await?;
    let names = wait_for_tools(agent, |names| !names.contains(&REFUND)).await?;
    let made = ScriptCall::new(
        REFUND,
        json!({"order_id": "A-1001", "amount": 20, "reason": "late"}),
    );
    let refusal = made.expect_denial(agent).await?;
    let mut lines = alert_lines(&alert);
    lines.push(StepLine::Good(format!(
        "tools shown now: {}",
        names.join(", ")
    )));
    lines.push(made.line());
    lines.extend(refusal.lines());
    let facts = json!({
        "alert": alert_facts(&alert),
        "tools": names,
        "call": refusal.facts(&made),
    });
    let title = "Overnight the server hides an instruction to the model in refund_order";
    teller.print_step(("drift", title), &lines, facts)
}

async fn approve_change(
    stage: &DemoEnvironment,
    agent: &DemoAgent,
    alerts: &mut Alerts,
    teller: &mut StepPrinter,
) -> Result<(), CliError> {
    stage.replace_tools(&changed_tools());
    let alert = next_alert(alerts).await?;
    let mut lines = alert_lines(&alert);
    let approving = ApprovalRequest {
        server: Some(SERVER.to_owned()),
        selection: ApprovalSelection {
            tools: vec![REFUND.to_owned()],
            ..ApprovalSelection::default()
        },
        by: "you".to_owned(),
        why: Some("refunds up to 100 with a reason are fine".to_owned()),
        scope: None,
    };
    let approved = stage.running.gateway.watch().approve(approving).await;
    approved.map_err(|error| demo_error(format!("the change could not be approved: {error}")))?;
    lines.push(StepLine::Action(format!(
        "you: toolwarden watch approve --server {SERVER} --tool {REFUND}"
    )));
    let names = wait_for_tools(agent, |names| names.contains(&REFUND)).await?;
    lines.push(StepLine::Good(format!(
        "tools shown now: {}",
        names.join(", ")
    )));
    let made = ScriptCall::new(
        REFUND,
        json!({"order_id": "A-1001", "amount": 20, "reason": "late"}),
    );
    let result = made.expect_result(agent).await?;
    lines.push(made.line());
    lines.push(StepLine::Good(result.to_string()));
    let facts = json!({
        "alert": alert_facts(&alert),
        "approved": REFUND,
        "tools": names,
        "call": {"tool": made.tool, "arguments": made.arguments, "result": result},
    });
    let title = "The server removes the instruction; you review and approve its new rules";
    teller.print_step(("approve", title), &lines, facts)
}

/// The tools of which one takes less than before, and says nothing else.
fn changed_tools() -> Vec<Value> {
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
struct ScriptCall {
    tool: &'static str,
    arguments: Value,
}

/// Why a call was refused.
struct ScriptDenial {
    code: String,
    reason: String,
    advice: String,
}

impl ScriptCall {
    const fn new(tool: &'static str, arguments: Value) -> Self {
        Self { tool, arguments }
    }

    fn line(&self) -> StepLine {
        StepLine::Action(format!("agent: {} {}", self.tool, self.arguments))
    }

    async fn expect_result(&self, agent: &DemoAgent) -> Result<Value, CliError> {
        match agent.call(self.tool, &self.arguments).await? {
            DemoCallOutcome::Result(result) => Ok(result),
            DemoCallOutcome::Denied { reason, .. } => {
                Err(demo_error(format!("{} was denied: {reason}", self.tool)))
            }
        }
    }

    async fn expect_denial(&self, agent: &DemoAgent) -> Result<ScriptDenial, CliError> {
        match agent.call(self.tool, &self.arguments).await? {
            DemoCallOutcome::Result(_) => Err(demo_error(format!("{} was not denied", self.tool))),
            DemoCallOutcome::Denied {
                code,
                reason,
                advice,
            } => Ok(ScriptDenial {
                code,
                reason,
                advice,
            }),
        }
    }
}

impl ScriptDenial {
    fn lines(&self) -> [StepLine; 2] {
        let advice = format!("the model reads: {}", self.advice);
        [StepLine::Bad(self.reason.clone()), StepLine::Note(advice)]
    }

    fn facts(&self, made: &ScriptCall) -> Value {
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
async fn next_alert(alerts: &mut Alerts) -> Result<WatchAlert, CliError> {
    let wait = async {
        loop {
            match alerts.recv().await {
                Ok(alert) if alert.tool == REFUND => return Ok((*alert).clone()),
                Ok(_) => {}
                Err(_) => return Err(demo_error("the watch ended")),
            }
        }
    };
    let heard = timeout(STEP_TIMEOUT, wait).await;
    heard.unwrap_or_else(|_| Err(demo_error("no alert about the drift arrived")))
}

/// The list of tools as soon as it is as it should be.
async fn wait_for_tools(
    agent: &DemoAgent,
    fits: impl Fn(&[&str]) -> bool,
) -> Result<Vec<String>, CliError> {
    let begun = Instant::now();
    loop {
        let names = agent.tools().await?;
        let shown: Vec<&str> = names.iter().map(String::as_str).collect();
        if fits(&shown) {
            return Ok(names);
        }
        if begun.elapsed() > STEP_TIMEOUT {
            return Err(demo_error(format!("the list of tools stayed {names:?}")));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// An alert in lines: its class, what changed, and the value that proves it.
fn alert_lines(alert: &WatchAlert) -> Vec<StepLine> {
    let mut lines = vec![StepLine::Action(format!(
        "alert: {} drifted, {}, severity {}",
        alert.tool,
        alert.class.as_str(),
        ToolwatchSeverity::from(alert.severity).as_str()
    ))];
    let changes = alert.drift.get("changes").and_then(Value::as_array);
    for change in changes.into_iter().flatten() {
        let word = |key: &str| change.get(key).and_then(Value::as_str).unwrap_or_default();
        lines.push(StepLine::Note(format!(
            "{}: {}",
            word("class"),
            word("message")
        )));
        let reasons = change.get("reasons").and_then(Value::as_array);
        for reason in reasons.into_iter().flatten().take(3) {
            let word = |key: &str| reason.get(key).and_then(Value::as_str).unwrap_or_default();
            lines.push(StepLine::Note(format!(
                "  {}: {}",
                word("detector"),
                word("message")
            )));
        }
    }
    if let Some(value) = witness(alert) {
        lines.push(StepLine::Note(format!(
            "valid before, rejected now: {value}"
        )));
    }
    lines
}

fn alert_facts(alert: &WatchAlert) -> Value {
    json!({
        "tool": alert.tool,
        "class": alert.class.as_str(),
        "severity": ToolwatchSeverity::from(alert.severity).as_str(),
        "summary": alert.summary,
        "witness": witness(alert),
    })
}

fn witness(alert: &WatchAlert) -> Option<&Value> {
    alert.drift.pointer("/input/declared/witness/value")
}
