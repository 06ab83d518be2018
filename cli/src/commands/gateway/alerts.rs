//! Tries out where alerts go, and shows what became of them.

use jiff::Timestamp;
use serde_json::{Value, json};
use toolwarden_store::{Delivery, DeliveryFilter, DeliveryStatus, Store};
use toolwarden_warden::notify::{Pace, Tested, test};

use super::error::GatewayCommandError;
use super::load;
use crate::args::{AlertsCommand, AlertsTestArgs, DeliveriesArgs, DeliveryWord, PlainFormat};
use crate::commands::watch::live::runtime;
use crate::error::CliError;
use crate::output::{Verdict, print};
use crate::style::{self, visible};

pub(in crate::commands) fn run(command: &AlertsCommand) -> Result<Verdict, CliError> {
    match command {
        AlertsCommand::Test(args) => try_out(args),
        AlertsCommand::Deliveries(args) => deliveries(args),
    }
}

fn try_out(args: &AlertsTestArgs) -> Result<Verdict, CliError> {
    let loaded = load::settings(&args.settings.config)?;
    let targets = &loaded.settings.alerts;
    if targets.is_empty() {
        return Err(GatewayCommandError::NoTargets { path: loaded.path }.into());
    }
    let pace = Pace::default();
    let testing = test(targets, args.target.as_deref(), &pace, Timestamp::now());
    let tested = runtime()?.block_on(testing);
    let tested = tested.map_err(GatewayCommandError::from)?;
    print(&match args.format {
        PlainFormat::Text => tested.iter().map(line).collect::<String>(),
        PlainFormat::Json => {
            let targets: Vec<Value> = tested.iter().map(entry).collect();
            let document = json!({"schema": "toolwarden/alerts/test/v1", "targets": targets});
            format!("{document:#}\n")
        }
    })?;
    let all = tested.iter().all(|it| it.outcome.is_ok());
    Ok(Verdict::measured(all))
}

fn line(tested: &Tested) -> String {
    let (good, bad, name) = (style::GOOD, style::ERROR, visible(&tested.target));
    match &tested.outcome {
        Ok(()) => format!("{good}arrived{good:#} {name}\n"),
        Err(error) => format!(
            "{bad}failed{bad:#}  {name}: {}\n",
            visible(&error.to_string())
        ),
    }
}

fn entry(tested: &Tested) -> Value {
    let error = tested.outcome.as_ref().err().map(ToString::to_string);
    json!({"target": tested.target, "arrived": tested.outcome.is_ok(), "error": error})
}

fn deliveries(args: &DeliveriesArgs) -> Result<Verdict, CliError> {
    let path = match &args.store {
        Some(path) => path.clone(),
        None => load::settings(&args.settings.config)?.settings.store,
    };
    let filter = DeliveryFilter {
        target: args.target.clone(),
        notice: None,
        status: args.status.map(|status| match status {
            DeliveryWord::Pending => DeliveryStatus::Pending,
            DeliveryWord::Delivered => DeliveryStatus::Delivered,
            DeliveryWord::Failed => DeliveryStatus::Failed,
        }),
        limit: Some(args.limit),
    };
    let found = match Store::open_existing(&path)? {
        Some(store) => store.deliveries(&filter)?,
        None => Vec::new(),
    };
    print(&match args.format {
        PlainFormat::Text if found.is_empty() => "No deliveries.\n".to_owned(),
        PlainFormat::Text => found.iter().map(delivery_line).collect::<String>(),
        PlainFormat::Json => {
            let found: Vec<Value> = found.iter().map(delivery_entry).collect();
            let schema = "toolwarden/alerts/deliveries/v1";
            let document = json!({"schema": schema, "deliveries": found});
            format!("{document:#}\n")
        }
    })?;
    Ok(Verdict::Fine)
}

fn delivery_line(delivery: &Delivery) -> String {
    let dim = style::DIM;
    let colour = match delivery.status {
        DeliveryStatus::Pending => style::WARNING,
        DeliveryStatus::Delivered => style::GOOD,
        DeliveryStatus::Failed => style::ERROR,
    };
    let tries = match delivery.tries {
        1 => "1 try".to_owned(),
        tries => format!("{tries} tries"),
    };
    let error = delivery.error.as_deref().map(visible);
    let error = error.map_or(String::new(), |it| format!(": {it}"));
    format!(
        "{dim}{:.0}{dim:#} {colour}{:<9}{colour:#} {} to {} {dim}({tries}){dim:#}{error}\n",
        delivery.at,
        delivery.status.as_str(),
        visible(&delivery.notice),
        visible(&delivery.target),
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
