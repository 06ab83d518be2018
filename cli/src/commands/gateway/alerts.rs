//! Tries out where alerts go, and shows what became of them.

use jiff::Timestamp;
use serde_json::{Value, json};
use toolwarden_notify::{RetryPolicy, TestDelivery, test};
use toolwarden_store::{Delivery, DeliveryFilter, DeliveryStatus, Store};

use super::load;
use crate::args::{AlertsCommand, AlertsTestArgs, DeliveriesArgs, DeliveryStatusArg, PlainFormat};
use crate::command_outcome::CommandOutcome;
use crate::commands::watch::live_servers::runtime;
use crate::commands::watch::store_path;
use crate::error::{CliError, GatewayCommandError};
use crate::output::print_text;
use crate::style::{self, escape_controls};

pub(in crate::commands) fn run(command: &AlertsCommand) -> Result<CommandOutcome, CliError> {
    match command {
        AlertsCommand::Test(args) => test_destinations(args),
        AlertsCommand::Deliveries(args) => list_deliveries(args),
    }
}

fn test_destinations(args: &AlertsTestArgs) -> Result<CommandOutcome, CliError> {
    let loaded = load::load_settings(args.settings.path())?;
    let targets = &loaded.settings.alerts;
    if targets.is_empty() {
        return Err(GatewayCommandError::NoTargets { path: loaded.path }.into());
    }
    let pace = RetryPolicy::default();
    let testing = test(targets, args.target.as_deref(), &pace, Timestamp::now());
    let tested = runtime()?.block_on(testing);
    let tested = tested.map_err(GatewayCommandError::from)?;
    print_text(&match args.format {
        PlainFormat::Text => tested.iter().map(test_line).collect::<String>(),
        PlainFormat::Json => {
            let targets: Vec<Value> = tested.iter().map(test_entry).collect();
            let document = json!({"schema": "toolwarden/alerts/test/v1", "targets": targets});
            format!("{document:#}\n")
        }
    })?;
    let all = tested.iter().all(|it| it.outcome.is_ok());
    Ok(CommandOutcome::from_measured(all))
}

fn test_line(tested: &TestDelivery) -> String {
    let (good, bad, name) = (
        style::SUCCESS,
        style::ERROR,
        escape_controls(&tested.target),
    );
    match &tested.outcome {
        Ok(()) => format!("{good}arrived{good:#} {name}\n"),
        Err(error) => format!(
            "{bad}failed{bad:#}  {name}: {}\n",
            escape_controls(&error.to_string())
        ),
    }
}

fn test_entry(tested: &TestDelivery) -> Value {
    let error = tested.outcome.as_ref().err().map(ToString::to_string);
    json!({"target": tested.target, "arrived": tested.outcome.is_ok(), "error": error})
}

fn list_deliveries(args: &DeliveriesArgs) -> Result<CommandOutcome, CliError> {
    let store = match &args.store {
        Some(path) => Some(store_path::require_store(path)?),
        // A gateway that never ran has no store yet.
        None => Store::open_existing(&load::load_settings(args.settings.path())?.settings.store)?,
    };
    let filter = DeliveryFilter {
        target: args.target.clone(),
        notice: None,
        status: args.status.map(|status| match status {
            DeliveryStatusArg::Pending => DeliveryStatus::Pending,
            DeliveryStatusArg::Delivered => DeliveryStatus::Delivered,
            DeliveryStatusArg::Failed => DeliveryStatus::Failed,
        }),
        limit: Some(args.limit),
    };
    let found = match store {
        Some(store) => store.deliveries(&filter)?,
        None => Vec::new(),
    };
    print_text(&match args.format {
        PlainFormat::Text if found.is_empty() => "No deliveries.\n".to_owned(),
        PlainFormat::Text => found.iter().map(delivery_line).collect::<String>(),
        PlainFormat::Json => {
            let found: Vec<Value> = found.iter().map(delivery_entry).collect();
            let schema = "toolwarden/alerts/deliveries/v1";
            let document = json!({"schema": schema, "deliveries": found});
            format!("{document:#}\n")
        }
    })?;
    Ok(CommandOutcome::Pass)
}

fn delivery_line(delivery: &Delivery) -> String {
    let dim = style::DIM;
    let colour = match delivery.status {
        DeliveryStatus::Pending => style::WARNING,
        DeliveryStatus::Delivered => style::SUCCESS,
        DeliveryStatus::Failed => style::ERROR,
    };
    let tries = match delivery.tries {
        1 => "1 try".to_owned(),
        tries => format!("{tries} tries"),
    };
    let error = delivery.error.as_deref().map(escape_controls);
    let error = error.map_or(String::new(), |it| format!(": {it}"));
    format!(
        "{dim}{:.0}{dim:#} {colour}{:<9}{colour:#} {} to {} {dim}({tries}){dim:#}{error}\n",
        delivery.at,
        delivery.status.as_str(),
        escape_controls(&delivery.notice),
        escape_controls(&delivery.target),
    )
}

fn delivery_entry(delivery: &Delivery) -> Value {
    json!({
        "target": delivery.target,
        "notice": delivery.notice,
        "status": delivery.status.as_str(),
        "tries": delivery.tries,
        "error": delivery.error,
        "at": format!("{:.3}", delivery.at),
    })
}
