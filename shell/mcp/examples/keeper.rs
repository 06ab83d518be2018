//! Starts a server with a reaper and waits to be killed: what the tests kill.
//!
//! `keeper PROGRAM ARGS…` starts the server, `keeper --reap` is the reaper.

use std::error::Error;
use std::io::{self, Write as _};
use std::time::Duration;

use toolwarden_mcp::{Client, Command, Endpoint, Inherit, Limits, reaper};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let program = args.next().ok_or("no program is named")?;
    if program == "--reap" {
        reaper::run(io::stdin().lock());
        return Ok(());
    }
    reaper::install(&std::env::current_exe()?, &["--reap"])?;
    let endpoint = Endpoint::Command(Command {
        program,
        args: args.collect(),
        env: Vec::new(),
        inherit: Inherit::default(),
        directory: None,
        shows_errors: false,
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(keep(&endpoint))
}

async fn keep(endpoint: &Endpoint) -> Result<(), Box<dyn Error>> {
    let client = Client::connect(endpoint, &Limits::default()).await?;
    writeln!(io::stdout(), "ready")?;
    tokio::time::sleep(Duration::from_secs(600)).await;
    client.close().await;
    Ok(())
}
