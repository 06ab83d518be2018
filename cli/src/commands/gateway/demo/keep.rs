//! The gateway of the demo, left running.

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines, Stdin};
use toolwarden_gateway::demo::{drifted_tools, tools};

use super::stage::{SERVER, Stage};
use crate::args::PlainFormat;
use crate::commands::gateway::process::{Wish, Wishes};
use crate::commands::talk::say;
use crate::error::CliError;
use crate::output::print;

/// Says how to use the gateway, and leaves it running until it is told to end.
pub(super) async fn run(stage: &Stage, format: PlainFormat) -> Result<(), CliError> {
    let mut wishes = Wishes::new()?;
    let url = stage.url();
    let client = json!({"mcpServers": {"toolwarden-demo": {"url": url}}});
    if format == PlainFormat::Text {
        print(&format!(
            "\nThe gateway is left running at {url} until Ctrl-C. For a client:\n\n{client:#}\n\n\
             Type `drift` to have the shop change a tool, `restore` to have it as it was. To approve:\n  \
             toolwarden watch approve --store '{}' --server {SERVER} --all\n",
            stage.store.display(),
        ))?;
    } else {
        say(&format!("listening on {url}"));
    }
    let mut lines = Some(BufReader::new(tokio::io::stdin()).lines());
    loop {
        tokio::select! {
            wish = wishes.next() => if matches!(wish, Wish::End(_)) {
                return Ok(());
            },
            line = next(&mut lines) => match line.as_deref().map(str::trim) {
                Some("drift") => {
                    stage.offer(&drifted_tools());
                    say("refund_order drifted");
                }
                Some("restore") => {
                    stage.offer(&tools());
                    say("refund_order is as it was");
                }
                Some("") => {}
                Some(_) => say("type `drift` or `restore`"),
                None => lines = None,
            },
        }
    }
}

/// The next line somebody types; never, where nobody does.
async fn next(lines: &mut Option<Lines<BufReader<Stdin>>>) -> Option<String> {
    match lines {
        Some(lines) => lines.next_line().await.ok().flatten(),
        None => std::future::pending().await,
    }
}
