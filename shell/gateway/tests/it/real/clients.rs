//! Clients of the official SDKs and of FastMCP walk through the shop behind the gateway. Whatever
//! the eras of client and server are, each sees the same.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolwarden_demo::DemoServer;
use toolwarden_mcp::Era;
use toolwarden_testkit::{Registry, installed};

use super::program::{printed, script_command};
use crate::support::{TestGateway, at, shop_of};

/// What the scripts subscribe to.
const UPDATED: &str = "orders://today";

/// A client under test.
struct Walker {
    registry: Registry,
    packages: &'static [&'static str],
    script: &'static str,
    ways: &'static [Way],
}

/// One way in which it connects.
struct Way {
    mode: &'static str,
    path: &'static str,
    /// The version that must come of it.
    version: &'static str,
}

const fn way(mode: &'static str, path: &'static str, version: &'static str) -> Way {
    Way {
        mode,
        path,
        version,
    }
}

/// Both eras of a client that speaks both.
const BOTH: &[Way] = &[
    way("legacy", "/mcp", "2025-11-25"),
    way("auto", "/mcp", "2026-07-28"),
    way("2026-07-28", "/mcp", "2026-07-28"),
];

/// Both transports of a client of the handshake era.
const OLD: &[Way] = &[
    way("http", "/mcp", "2025-11-25"),
    way("sse", "/sse", "2025-11-25"),
];
const OLDER: &[Way] = &[
    way("http", "/mcp", "2025-06-18"),
    way("sse", "/sse", "2025-06-18"),
];

/// What a walk through the shop comes to.
fn expected(version: &str) -> Value {
    let tools = [
        "search_orders",
        "refund_order",
        "export_report",
        "cancel_order",
        "draft_reply",
        "list_folders",
        "echo",
    ];
    json!({
        "version": version,
        "tools": tools.map(|tool| format!("shop__{tool}")),
        "search": {
            "orders": [{
                "id": "A-1001",
                "customer": "Ada Lindqvist",
                "status": "paid",
                "region": "eu",
                "total": 129.9,
            }],
            "matches": 2,
        },
        "progress": [[1, 3], [2, 3], [3, 3]],
        "report": "the report is written",
        "cancelled": "order A-1002 is cancelled",
        "drafted": "Dear customer",
        "folders": "[\"file:///reports\"]",
        "prompts": ["shop__refund_letter"],
        "prompt": "Write a formal letter that tells the customer of order A-1001 of the refund.",
        "completion": ["formal", "friendly"],
        "resources": ["orders://today"],
        "templates": ["orders://{order_id}"],
        "resource": {
            "id": "A-1004",
            "customer": "Ada Lindqvist",
            "status": "refunded",
            "region": "eu",
            "total": 19.99,
        },
        "updated": UPDATED,
    })
}

/// A shop of one era behind a gateway, with constant updates of a resource.
struct Place {
    gateway: TestGateway,
    _server: DemoServer,
    news: JoinHandle<()>,
}

impl Place {
    async fn open(era: Era, grants: Option<&str>) -> Self {
        let server = shop_of(era);
        let gateway = match grants {
            None => TestGateway::before(&[("shop", &server)]).await,
            Some(group) => {
                let mut entry = at(&server);
                entry["tool_defaults"] = json!({"group": [group]});
                let principals = json!({"agent": {"groups": [group]}});
                TestGateway::start(&json!({
                    "servers": {"shop": entry},
                    "policy": {"tools": {}, "principals": principals},
                }))
                .await
            }
        };
        let shop = server.shop.clone();
        let news = tokio::spawn(async move {
            loop {
                shop.notify_resource_updated(UPDATED);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Self {
            gateway,
            _server: server,
            news,
        }
    }

    async fn close(self) {
        self.news.abort();
        self.gateway.stop().await;
    }
}

async fn check(walker: &Walker) {
    check_granted(walker, None).await;
}

/// As [`check`], for a principal that is granted one group and a client that knows nothing of groups.
async fn check_granted(walker: &Walker, group: Option<&str>) {
    let Some(programs) = installed(walker.registry, walker.packages) else {
        return;
    };
    let (old, new) = (
        Place::open(Era::Handshake, group).await,
        Place::open(Era::Stateless, group).await,
    );
    for way in walker.ways {
        let walk = async |place: &Place| {
            let url = format!("{}{}", place.gateway.root(), way.path);
            let seen = {
                let mut command = script_command(walker.registry, &programs, walker.script);
                printed(command.args([url.as_str(), way.mode])).await
            };
            assert_eq!(
                seen,
                expected(way.version),
                "{} {}",
                walker.script,
                way.mode
            );
        };
        tokio::join!(walk(&old), walk(&new));
    }
    old.close().await;
    new.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_sdk_2_3_0() {
    check(&Walker {
        registry: Registry::PyPi,
        packages: &["mcp==2.3.0"],
        script: "python_2.py",
        ways: BOTH,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_sdk_2_3_0_of_a_principal_with_one_group() {
    let walker = Walker {
        registry: Registry::PyPi,
        packages: &["mcp==2.3.0"],
        script: "python_2.py",
        ways: BOTH,
    };
    check_granted(&walker, Some("read-only")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_sdk_1_30_0() {
    check(&Walker {
        registry: Registry::PyPi,
        packages: &["mcp==1.30.0"],
        script: "python_1.py",
        ways: OLD,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_sdk_1_10_1() {
    check(&Walker {
        registry: Registry::PyPi,
        packages: &["mcp==1.10.1", "pydantic==2.11.7"],
        script: "python_1.py",
        ways: OLDER,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_4_1_2() {
    check(&Walker {
        registry: Registry::PyPi,
        packages: &["fastmcp==4.1.2"],
        script: "fastmcp_4.py",
        ways: BOTH,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_sdk_2_4_0() {
    check(&Walker {
        registry: Registry::Npm,
        packages: &["@modelcontextprotocol/client@2.4.0"],
        script: "typescript_2.mjs",
        ways: BOTH,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_sdk_1_32_2() {
    check(&Walker {
        registry: Registry::Npm,
        packages: &["@modelcontextprotocol/sdk@1.32.2"],
        script: "typescript_1.mjs",
        ways: OLD,
    })
    .await;
}
