//! Official clients give the model the reason of a denied call, never an error of validation.

use serde_json::json;
use toolwarden_mcp::Era;
use toolwarden_testkit::{Registry, installed};

use crate::real::program::{printed, script_command};
use crate::support::{TestGateway, shop_of};

const REASON: &str = "secret:read";

/// The mode of a client, for each era.
const MODES: [&str; 2] = ["legacy", "2026-07-28"];

async fn check(registry: Registry, packages: &[&str], script: &str) {
    let Some(programs) = installed(registry, packages) else {
        return;
    };
    let policy = json!({
        "tools": {"shop__echo": {"required_permissions": [REASON]}},
        "principals": {"agent": {"groups": ["*"]}},
    });
    for form in ["tool-error", "rpc-error"] {
        let shop = shop_of(Era::Handshake);
        let settings = json!({"policy": policy, "denials": form});
        let gateway = TestGateway::before_with(&[("shop", &shop)], settings).await;
        for mode in MODES {
            let mut command = script_command(registry, &programs, script);
            command.args([&gateway.url, mode]);
            let seen = printed(&mut command).await;
            let text = seen["text"].as_str().unwrap_or_default();
            let place = format!("{script} {form} {mode}: {seen}");
            assert!(text.contains(REASON), "{place}");
            assert!(
                text.contains("Ask an administrator") || text.contains("grant"),
                "{place}"
            );
            match form {
                "tool-error" => assert_eq!(seen["isError"], true, "{place}"),
                _ => assert_eq!(seen["code"], -32010, "{place}"),
            }
        }
        assert!(shop.shop.seen().calls.is_empty());
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn python_sdk_2_3_0_reads_the_reason() {
    check(Registry::PyPi, &["mcp==2.3.0"], "denied_python_2.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_4_1_2_reads_the_reason() {
    check(Registry::PyPi, &["fastmcp==4.1.2"], "denied_fastmcp_4.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_sdk_2_4_0_reads_the_reason() {
    let packages = ["@modelcontextprotocol/client@2.4.0"];
    check(Registry::Npm, &packages, "denied_typescript_2.mjs").await;
}
