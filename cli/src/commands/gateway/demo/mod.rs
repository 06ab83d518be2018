//! Shows the gateway at work: a shop as the server, the gateway before it, and an agent.

mod agent;
mod keep;
mod stage;
mod story;
mod teller;

use std::time::Duration;

use toolwarden_gateway::demo::{Shop, ShopOptions, serve_stdio};

use super::error::GatewayCommandError;
use super::process;
use crate::args::{DemoArgs, DemoServerArgs};
use crate::error::CliError;
use crate::output::Verdict;
use stage::Stage;
use teller::Teller;

/// How long each thing that should happen may take.
const PATIENCE: Duration = Duration::from_secs(10);

pub(in crate::commands) fn run(args: &DemoArgs) -> Result<Verdict, CliError> {
    process::run(Box::pin(show(args)))
}

async fn show(args: &DemoArgs) -> Result<Verdict, CliError> {
    let mut teller = Teller::new(args.format);
    let stage = Stage::set(args.keep.then_some(args.listen)).await?;
    let told = story::tell(&stage, &mut teller).await;
    if told.is_err() || !args.keep {
        stage.clear().await;
        told?;
        teller.end()?;
        return Ok(Verdict::Fine);
    }
    teller.end()?;
    keep::run(&stage, args.format).await?;
    stage.clear().await;
    Ok(Verdict::Fine)
}

/// Serves the shop of the demo on standard streams.
pub(in crate::commands) fn serve_shop(args: &DemoServerArgs) -> Result<Verdict, CliError> {
    let shop = Shop::new(ShopOptions::default());
    if args.drifted {
        shop.drift();
    }
    process::run(Box::pin(async move {
        let served = serve_stdio(&shop, tokio::io::stdin(), tokio::io::stdout()).await;
        served.map_err(GatewayCommandError::Agent)?;
        Ok(Verdict::Fine)
    }))
}

/// Why the demo stopped, in words.
fn astray(what: impl Into<String>) -> CliError {
    GatewayCommandError::Demo { what: what.into() }.into()
}
