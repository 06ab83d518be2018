//! Watching inside the gateway, on real stores.

mod comparison_pool;
mod first_use;
mod lists;
mod mutations;
mod results;
mod strip_hidden;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolwarden_settings::WatchSettings;
use toolwarden_watch::inline::{InlineOptions, InlineWatch, ListCheck, ReceivedList};

/// A store in its own folder, and a watch on it.
struct Gate {
    folder: TempDir,
    watch: InlineWatch,
    settings: Arc<WatchSettings>,
}

impl Gate {
    fn new() -> Self {
        Self::with(quick(), WatchSettings::default())
    }

    fn with(options: InlineOptions, settings: WatchSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let watch = InlineWatch::open(&store_in(folder.path()), options).unwrap();
        Self {
            folder,
            watch,
            settings: Arc::new(settings),
        }
    }

    fn store(&self) -> PathBuf {
        store_in(self.folder.path())
    }

    fn seen(&self, tools: &[Value]) -> ReceivedList {
        ReceivedList {
            server: "mail".to_owned(),
            variant: None,
            unchanged: Vec::new(),
            is_complete: true,
            tools: tools.iter().map(|tool| raw(&tool.to_string())).collect(),
            instructions: None,
            settings: Arc::clone(&self.settings),
        }
    }

    async fn check(&self, tools: &[Value]) -> Arc<ListCheck> {
        self.watch.check(self.seen(tools)).await.unwrap()
    }
}

fn store_in(folder: &Path) -> PathBuf {
    folder.join("store.db")
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// The default options, but without waits.
fn quick() -> InlineOptions {
    InlineOptions {
        poll_interval: Duration::from_millis(20),
        result_check_interval: Duration::ZERO,
        ..InlineOptions::default()
    }
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object",
        "properties": {"to": {"type": "string"}}}})
}

/// Runs a test like the gateway would.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let limited = tokio::time::timeout(Duration::from_secs(60), test);
        limited.await.unwrap();
    });
}
