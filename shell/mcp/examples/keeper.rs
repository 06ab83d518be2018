//! A program that the tests kill: it starts a server with a reaper and waits.
//!
//! `keeper PROGRAM ARGS…` starts the server, `keeper --reap` runs the reaper.

use std::error::Error;
use std::io::{self, Write as _};
use std::time::Duration;

use toolwarden_mcp::{
    Command, ConnectionLimits, Endpoint, EnvInheritance, McpClient, orphan_reaper,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let program = args.next().ok_or("no program is named")?;
    if program == "--reap" {
        orphan_reaper::run(io::stdin().lock());
        return Ok(());
    }
    orphan_reaper::install(&std::env::current_exe()?, &["--reap"])?;
    let endpoint = Endpoint::Command(Command {
        program,
        args: args.collect(),
        env: Vec::new(),
        inherit: EnvInheritance::default(),
        directory: None,
        shows_errors: false,
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(keep(&endpoint))
}

async fn keep(endpoint: &Endpoint) -> Result<(), Box<dyn Error>> {
    let client = McpClient::connect(endpoint, &ConnectionLimits::default()).await?;
    writeln!(io::stdout(), "ready")?;
    tokio::time::sleep(Duration::from_secs(600)).await;
    client.close().await;
    Ok(())
}
