//! Shows the gateway at work: a shop as the server, the gateway before it, and an agent.

mod agent;
mod environment;
mod keep_running;
mod script;
mod step_printer;

use std::time::Duration;

use toolwarden_demo::{Shop, ShopOptions, serve_stdio};

use super::process;
use crate::args::{DemoArgs, DemoServerArgs};
use crate::command_outcome::CommandOutcome;
use crate::error::{CliError, GatewayCommandError};
use environment::DemoEnvironment;
use step_printer::StepPrinter;

/// How long each thing that should happen may take.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

pub(in crate::commands) fn run(args: &DemoArgs) -> Result<CommandOutcome, CliError> {
    process::block_on(Box::pin(show(args)))
}

async fn show(args: &DemoArgs) -> Result<CommandOutcome, CliError> {
    let mut teller = StepPrinter::new(args.format);
    let stage = DemoEnvironment::start(args.keep.then_some(args.listen)).await?;
    let told = script::run_script(&stage, &mut teller).await;
    if told.is_err() || !args.keep {
        stage.stop().await;
        told?;
        teller.finish()?;
        return Ok(CommandOutcome::Pass);
    }
    teller.finish()?;
    keep_running::run(&stage, args.format).await?;
    stage.stop().await;
    Ok(CommandOutcome::Pass)
}

/// Serves the shop of the demo on standard streams.
pub(in crate::commands) fn serve_shop(args: &DemoServerArgs) -> Result<CommandOutcome, CliError> {
    let shop = Shop::new(ShopOptions::default());
    if args.drifted {
        shop.drift();
    }
    process::block_on(Box::pin(async move {
        let served = serve_stdio(&shop, tokio::io::stdin(), tokio::io::stdout()).await;
        served.map_err(GatewayCommandError::Agent)?;
        Ok(CommandOutcome::Pass)
    }))
}

/// Why the demo stopped, in words.
fn demo_error(what: impl Into<String>) -> CliError {
    GatewayCommandError::Demo { what: what.into() }.into()
}
