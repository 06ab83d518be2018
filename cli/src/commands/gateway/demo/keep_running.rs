//! The gateway of the demo, left running.

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines, Stdin};
use toolwarden_demo::{drifted_tools, tools};

use super::environment::{DemoEnvironment, SERVER};
use crate::args::PlainFormat;
use crate::commands::gateway::process::{ProcessSignal, SignalListener};
use crate::commands::progress::print_status;
use crate::error::CliError;
use crate::output::print_text;

/// Says how to use the gateway, and leaves it running until a signal stops it.
pub(super) async fn run(stage: &DemoEnvironment, format: PlainFormat) -> Result<(), CliError> {
    let mut wishes = SignalListener::new()?;
    let url = stage.url();
    let client = json!({"mcpServers": {"toolwarden-demo": {"url": url}}});
    if format == PlainFormat::Text {
        print_text(&format!(
            "\nThe gateway keeps running at {url} until Ctrl-C. Configuration for a client:\n\n{client:#}\n\n\
             Type `drift` to change a tool of the shop, `restore` to undo the change. To approve it:\n  \
             toolwarden watch approve --store '{}' --server {SERVER} --all\n",
            stage.store.display(),
        ))?;
    } else {
        print_status(&format!("listening on {url}"));
    }
    let mut lines = Some(BufReader::new(tokio::io::stdin()).lines());
    loop {
        tokio::select! {
            wish = wishes.next() => if matches!(wish, ProcessSignal::End(_)) {
                return Ok(());
            },
            line = next_line(&mut lines) => match line.as_deref().map(str::trim) {
                Some("drift") => {
                    stage.replace_tools(&drifted_tools());
                    print_status("refund_order drifted");
                }
                Some("restore") => {
                    stage.replace_tools(&tools());
                    print_status("refund_order is restored");
                }
                Some("") => {}
                Some(_) => print_status("type `drift` or `restore`"),
                None => lines = None,
            },
        }
    }
}

/// The next line of input; waits forever if there is no input to read.
async fn next_line(lines: &mut Option<Lines<BufReader<Stdin>>>) -> Option<String> {
    match lines {
        Some(lines) => lines.next_line().await.ok().flatten(),
        None => std::future::pending().await,
    }
}
