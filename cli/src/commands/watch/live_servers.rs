//! Asks live servers, several at a time.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use toolwarden_mcp::{ConnectionLimits, Endpoint, McpClient, McpError, ServerDescription};
use toolwarden_watch::SampleCall;

use super::sources::{SourceKind, WatchSource};
use crate::error::CliError;

/// As many servers are asked at a time.
const MAX_CONCURRENT: usize = 8;

/// The tools and call results of a live server.
#[derive(Debug)]
pub(super) struct LiveAnswer {
    /// The definitions, as received.
    pub(super) tools: Vec<String>,
    /// What tools returned, by tool.
    pub(super) results: Vec<(String, Value)>,
    /// Calls that brought no result, by tool, and why.
    pub(super) failed_calls: Vec<(String, String)>,
    pub(super) server: ServerDescription,
}

/// Asks every live server; nothing for those that are not.
pub(super) fn query_servers(
    sources: &[WatchSource],
    calls: &[SampleCall],
) -> Result<Vec<Option<Result<LiveAnswer, McpError>>>, CliError> {
    let live = sources
        .iter()
        .filter(|source| matches!(source.kind, SourceKind::Live(_)));
    let count = live.count();
    let mut answers: Vec<Option<Result<LiveAnswer, McpError>>> =
        sources.iter().map(|_| None).collect();
    if count == 0 {
        return Ok(answers);
    }
    let bar = progress(count);
    let runtime = runtime()?;
    runtime.block_on(async {
        let mut interrupt = Interrupt::new()?;
        let places = Arc::new(Semaphore::new(MAX_CONCURRENT));
        let mut tasks = JoinSet::new();
        for (index, source) in sources.iter().enumerate() {
            let SourceKind::Live(endpoint) = &source.kind else {
                continue;
            };
            let (endpoint, timeout) = (endpoint.clone(), source.timeout);
            let calls: Vec<SampleCall> = source.calls.iter().chain(calls).cloned().collect();
            let places = Arc::clone(&places);
            tasks.spawn(async move {
                // The semaphore is never closed.
                let _place = places.acquire().await;
                (index, query_server(&endpoint, timeout, &calls).await)
            });
        }
        loop {
            tokio::select! {
                // Servers that were started end with the tasks that started them.
                code = interrupt.wait() => {
                    tasks.shutdown().await;
                    return Err(CliError::Interrupted { code });
                }
                done = tasks.join_next() => {
                    let Some(done) = done else { return Ok(()) };
                    bar.inc(1);
                    let (index, answer) = done.map_err(|error| CliError::Runtime(error.into()))?;
                    if let Some(slot) = answers.get_mut(index) {
                        *slot = Some(answer);
                    }
                }
            }
        }
    })?;
    bar.finish_and_clear();
    Ok(answers)
}

/// The signals that end a command.
pub(in crate::commands) struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Interrupt {
    /// Needs a runtime.
    pub(in crate::commands) fn new() -> Result<Self, CliError> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(CliError::Runtime)?,
            terminate: signal(SignalKind::terminate()).map_err(CliError::Runtime)?,
            hang_up: signal(SignalKind::hangup()).map_err(CliError::Runtime)?,
        })
    }

    /// Waits for it, and gives the exit code that tells it.
    pub(in crate::commands) async fn wait(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => 130,
            _ = self.terminate.recv() => 143,
            _ = self.hang_up.recv() => 129,
        }
    }
}

/// A runtime for everything that waits on servers.
pub(in crate::commands) fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().map_err(CliError::Runtime)
}

/// Asks one server for its tools and makes calls of it.
pub(super) async fn query_server(
    endpoint: &Endpoint,
    timeout: Duration,
    calls: &[SampleCall],
) -> Result<LiveAnswer, McpError> {
    let limits = ConnectionLimits {
        start: timeout,
        request: timeout,
        total: timeout,
        ..ConnectionLimits::default()
    };
    let client = McpClient::connect(endpoint, &limits).await?;
    let answer = read_server(&client, calls).await;
    client.close().await;
    answer
}

async fn read_server(client: &McpClient, calls: &[SampleCall]) -> Result<LiveAnswer, McpError> {
    let listing = client.list_tools().await?;
    let mut results = Vec::new();
    let mut refused = Vec::new();
    for call in calls {
        if !listing
            .tools
            .iter()
            .any(|text| has_name(text.get(), &call.tool))
        {
            refused.push((call.tool.clone(), "the server does not list it".to_owned()));
            continue;
        }
        let result = match client.call_tool(&call.tool, &call.arguments).await {
            Ok(result) => result,
            Err(error @ McpError::Rpc { .. }) => {
                refused.push((call.tool.clone(), error.to_string()));
                continue;
            }
            Err(error) => return Err(error),
        };
        match serde_json::from_str(result.get()) {
            Ok(result) => results.push((call.tool.clone(), result)),
            Err(error) => refused.push((call.tool.clone(), error.to_string())),
        }
    }
    Ok(LiveAnswer {
        tools: listing
            .tools
            .iter()
            .map(|tool| tool.get().to_owned())
            .collect(),
        results,
        failed_calls: refused,
        server: listing.server,
    })
}

fn has_name(definition: &str, name: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct NamedDefinition {
        name: String,
    }
    serde_json::from_str::<NamedDefinition>(definition).is_ok_and(|it| it.name == name)
}

fn progress(servers: usize) -> ProgressBar {
    if servers < 2 || !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("asking servers {bar:30} {pos}/{len} {elapsed}");
    let bar = ProgressBar::new(servers as u64);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
