//! The server, the gateway and the store of the demo.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use tokio::task::JoinHandle;
use toolwarden_demo::{DemoServer, ShopOptions};
use toolwarden_gateway::runtime::{RunningGateway, load_policy};
use toolwarden_mcp::{Endpoint, ServerUrl};
use toolwarden_settings::{IdentitySettings, PolicySource, PrefixMode, ServerSettings, Settings};

use super::demo_error;
use crate::error::{CliError, GatewayCommandError};

/// The name of the server.
pub(super) const SERVER: &str = "shop";

/// Who calls.
pub(super) const AGENT: &str = "agent";

/// The rules of the demo.
const POLICY: &str = "\
tools:
  cancel_order: {groups: [managers]}
principals:
  agent: {groups: [default]}
audit: {durability: group}
";

/// Everything the demo needs.
pub(super) struct DemoEnvironment {
    pub(super) running: Arc<RunningGateway>,
    pub(super) shop: DemoServer,
    pub(super) store: PathBuf,
    serving: JoinHandle<()>,
    /// Goes with the demo.
    _folder: TempDir,
}

impl DemoEnvironment {
    /// Starts everything: at this address, or at a free port of loopback.
    pub(super) async fn start(listen: Option<SocketAddr>) -> Result<Self, CliError> {
        let folder = TempDir::new().map_err(CliError::Runtime)?;
        let shop = DemoServer::start(ShopOptions::default()).map_err(CliError::Runtime)?;
        let store = folder.path().join("demo.db");
        let settings = settings(&shop.url, store.clone(), listen);
        let policy = load_policy(&settings, Path::new("demo"));
        let policy = policy.map_err(GatewayCommandError::from)?;
        let masked = serde_json::Value::Null;
        let running = RunningGateway::start(settings, policy, masked).await;
        let running = Arc::new(running.map_err(GatewayCommandError::Start)?);
        let serving = Arc::clone(&running);
        let serving = tokio::spawn(async move {
            serving.serve(serving.router()).await;
        });
        Ok(Self {
            running,
            shop,
            store,
            serving,
            _folder: folder,
        })
    }

    /// Where agents reach the gateway.
    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.running.address())
    }

    /// Ends everything in order.
    pub(super) async fn stop(self) {
        self.running.shutdown().begin();
        // A panic was already reported.
        drop(self.serving.await);
    }

    /// Has the server offer other tools, and say so.
    pub(super) fn replace_tools(&self, tools: &[serde_json::Value]) {
        self.shop.shop.set_tools(tools);
        self.shop.shop.notify_list_changed();
    }

    /// Verifies the log, and tells how many records it has.
    pub(super) async fn verify_log(&self) -> Result<u64, CliError> {
        let path = self.store.clone();
        let verified = tokio::task::spawn_blocking(move || {
            let store = toolwarden_store::Store::open(&path)?;
            toolwarden_live_guard::audit::verify(&store, None)
        });
        let verified = verified
            .await
            .map_err(|error| CliError::Runtime(error.into()))??;
        match verified.chain {
            Ok(intact) if verified.damage.is_empty() => Ok(intact.records),
            Ok(_) => Err(demo_error("the store is damaged")),
            Err(fault) => Err(demo_error(format!("the log is not intact: {fault}"))),
        }
    }
}

fn settings(url: &str, store: PathBuf, listen: Option<SocketAddr>) -> Settings {
    let endpoint = Endpoint::Url(ServerUrl {
        url: url.to_owned(),
        headers: Vec::new(),
    });
    let mut settings = Settings {
        servers: vec![ServerSettings::new(SERVER, endpoint)],
        prefix: PrefixMode::Never,
        policy: PolicySource::Inline(POLICY.to_owned()),
        store,
        identity: IdentitySettings {
            anonymous: Some(AGENT.to_owned()),
            ..IdentitySettings::default()
        },
        drain: std::time::Duration::from_secs(1),
        ..Settings::default()
    };
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    settings.listen.address = listen.unwrap_or(free);
    settings
}
