//! A server that changes a tool between the list and the call.

use serde_json::{Value, json};
use toolwarden_demo::DemoServer;
use toolwarden_mcp::Era;
use toolwarden_store::{Approval, Store};
use toolwarden_watch::{ApprovalSelection, approve};

use super::{ERAS, Hook, approve_all, at_with, code, worked};
use crate::support::{Agent, TestGateway, shop_of, until, until_async};

const REFUND: &str = "shop__refund_order";

fn refund() -> Value {
    json!({"order_id": "A-1001", "amount": 5, "reason": "broken"})
}

struct RugPull {
    server: DemoServer,
    gateway: TestGateway,
    agent: Agent,
    hook: Hook,
}

/// A gateway in front of a server that was listed and used.
async fn start(agents: Era, servers: Era, watch: Value) -> RugPull {
    let server = shop_of(servers);
    let (hook, url) = Hook::start().await;
    let gateway = TestGateway::start(&json!({
        "servers": {"shop": at_with(&server, json!({"watch": watch, "restart": {"first": "10ms"}}))},
        "alerts": {"people": {"webhook": url, "secret": "between-us"}},
    }))
    .await;
    let agent = Agent::of(agents, &gateway.url, "{}").await;
    assert!(agent.tools().await.contains(&REFUND.to_owned()));
    let answer = agent.call(REFUND, refund()).await;
    assert!(worked(&answer), "{answer}");
    RugPull {
        server,
        gateway,
        agent,
        hook,
    }
}

impl RugPull {
    fn calls(&self) -> u64 {
        self.server.shop.seen().calls_of("refund_order")
    }

    /// The tool is withheld, an alert was sent, and no call reached the server.
    async fn is_refused(&self) {
        let calls = self.calls();
        let answer = self.agent.call(REFUND, refund()).await;
        assert_eq!(code(&answer), Some("quarantined"), "{answer}");
        assert_eq!(self.calls(), calls, "the server never saw it");
        assert!(!self.sees().await);
        assert!(worked(&self.agent.call("shop__echo", json!({})).await));
        until("alert delivered", || !self.hook.of_kind("drift").is_empty()).await;
        let alerts = self.hook.of_kind("drift");
        let told: Vec<_> = alerts
            .iter()
            .map(|it| [&it["server"], &it["tool"]])
            .collect();
        assert_eq!(told, [[&json!("shop"), &json!("refund_order")]], "once");
        assert_eq!(alerts[0]["severity"], "high");
        let (headers, _) = self.hook.got.lock().unwrap()[0].clone();
        assert!(
            headers["toolwarden-signature"]
                .to_str()
                .unwrap()
                .starts_with("t=")
        );
    }

    async fn stays_refused_until_approved(self) {
        self.is_refused().await;
        approve_all(&self.gateway.gateway).await;
        self.is_restored().await;
        self.gateway.stop().await;
    }

    async fn sees(&self) -> bool {
        self.agent.tools().await.contains(&REFUND.to_owned())
    }

    /// The tool is served again in its current form.
    async fn is_restored(&self) {
        until_async("it is served again", || self.sees()).await;
        let answer = self.agent.call(REFUND, refund()).await;
        assert!(worked(&answer), "{answer}");
        let list = self.agent.result("tools/list", json!({})).await;
        let tools = list["tools"].as_array().unwrap();
        let tool = tools.iter().find(|it| it["name"] == REFUND).unwrap();
        let description = tool["description"].as_str().unwrap();
        assert!(description.contains("<IMPORTANT>"), "{description}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_server_notifies() {
    for agents in ERAS {
        for servers in ERAS {
            let pulled = start(agents, servers, json!({})).await;
            let shop = &pulled.server.shop;
            until("the gateway listens", || shop.listeners() > 0).await;
            shop.drift();
            shop.notify_list_changed();
            until_async("it is withheld", async || !pulled.sees().await).await;
            pulled.stays_refused_until_approved().await;
        }
    }
}

/// The server sends no notification, and the very next call is denied. Another process approves.
#[tokio::test(flavor = "multi_thread")]
async fn silently_before_a_call() {
    for agents in ERAS {
        let pulled = start(agents, Era::Handshake, json!({"before_call": "0s"})).await;
        pulled.server.shop.drift();
        let calls = pulled.calls();
        let answer = pulled.agent.call(REFUND, refund()).await;
        assert_eq!(code(&answer), Some("quarantined"), "{answer}");
        assert_eq!(pulled.calls(), calls);
        pulled.is_refused().await;
        let store = Store::open(&pulled.gateway.gateway.settings().store).unwrap();
        let servers = store.servers().unwrap();
        let all = ApprovalSelection {
            all: true,
            ..ApprovalSelection::default()
        };
        let approval = Approval {
            by: "ben".to_owned(),
            at: "2026-11-16T12:00:00Z".parse().unwrap(),
            why: None,
        };
        assert_eq!(approve(&store, &servers, &all, &approval).unwrap().len(), 1);
        pulled.is_restored().await;
        // A return to the first pinned definition is drift, too.
        pulled.server.shop.restore();
        let answer = pulled.agent.call(REFUND, refund()).await;
        assert_eq!(code(&answer), Some("quarantined"), "{answer}");
        pulled.gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn by_the_clock() {
    let pulled = start(Era::Handshake, Era::Handshake, json!({"every": "100ms"})).await;
    pulled.server.shop.drift();
    until_async("it is withheld", async || !pulled.sees().await).await;
    pulled.stays_refused_until_approved().await;
}

/// The new server does not know the previous session: the first call that finds this lists the tools before it is
/// sent there.
#[tokio::test(flavor = "multi_thread")]
async fn over_a_restart_of_the_server() {
    let pulled = start(Era::Handshake, Era::Handshake, json!({})).await;
    pulled.server.kill();
    pulled.server.shop.drift();
    pulled.server.restart().unwrap();
    let calls = pulled.calls();
    until_async("it is withheld", async || {
        let answer = pulled.agent.call(REFUND, refund()).await;
        assert!(!worked(&answer), "{answer}");
        code(&answer) == Some("quarantined")
    })
    .await;
    assert_eq!(pulled.calls(), calls);
    pulled.stays_refused_until_approved().await;
}

/// Without sessions, a restart shows by the end of the stream of change notifications.
#[tokio::test(flavor = "multi_thread")]
async fn over_a_restart_of_a_stateless_server() {
    let pulled = start(Era::Handshake, Era::Stateless, json!({})).await;
    let shop = &pulled.server.shop;
    until("the gateway listens", || shop.listeners() > 0).await;
    pulled.server.kill();
    shop.drift();
    pulled.server.restart().unwrap();
    until_async("it is withheld", async || !pulled.sees().await).await;
    pulled.stays_refused_until_approved().await;
}

/// Changes made while the stream is down are detected when it is reopened.
#[tokio::test(flavor = "multi_thread")]
async fn without_open_streams() {
    let pulled = start(Era::Handshake, Era::Stateless, json!({})).await;
    let shop = &pulled.server.shop;
    until("the gateway listens", || shop.listeners() > 0).await;
    shop.close_streams();
    until("the stream is away", || shop.listeners() == 0).await;
    // Listed once more, so that the end of the stream is not a reason to list.
    let looks = || shop.seen().lists;
    let before = looks();
    until_async("it was looked at", async || {
        pulled.agent.tools().await;
        looks() > before
    })
    .await;
    shop.drift();
    until("alert delivered", || {
        !pulled.hook.of_kind("drift").is_empty()
    })
    .await;
    pulled.is_refused().await;
    pulled.gateway.stop().await;
}

/// The gateway detected the change itself, and the agent's call detects that it was undone.
#[tokio::test(flavor = "multi_thread")]
async fn put_back_in_silence() {
    for servers in ERAS {
        let pulled = start(Era::Handshake, servers, json!({"before_call": "0s"})).await;
        let shop = &pulled.server.shop;
        until("the gateway listens", || shop.listeners() > 0).await;
        shop.drift();
        shop.notify_list_changed();
        until("alert delivered", || {
            !pulled.hook.of_kind("drift").is_empty()
        })
        .await;
        pulled.is_refused().await;
        shop.restore();
        let answer = pulled.agent.call(REFUND, refund()).await;
        assert!(worked(&answer), "{servers:?}: {answer}");
        pulled.gateway.stop().await;
    }
}

/// An expired session is renewed transparently if the server has not changed.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_expire_are_renewed_and_the_server_looked_at() {
    let pulled = start(Era::Handshake, Era::Handshake, json!({})).await;
    pulled.server.shop.expire_sessions();
    let answer = pulled.agent.call(REFUND, refund()).await;
    assert!(worked(&answer), "{answer}");
    pulled.server.shop.drift();
    pulled.server.shop.expire_sessions();
    let calls = pulled.calls();
    let answer = pulled.agent.call(REFUND, refund()).await;
    assert_eq!(code(&answer), Some("quarantined"), "{answer}");
    assert_eq!(pulled.calls(), calls);
    let rows = super::rows(&pulled.gateway.gateway);
    assert_eq!(rows.last().unwrap().word(), "outcome failed");
    pulled.gateway.stop().await;
}

/// The pins outlive the gateway.
#[tokio::test(flavor = "multi_thread")]
async fn over_a_restart_of_the_gateway() {
    let pulled = start(Era::Handshake, Era::Handshake, json!({})).await;
    let folder = pulled.gateway.stop().await;
    pulled.server.shop.drift();
    let settings = json!({"servers": {"shop": at_with(&pulled.server, json!({"start": "lazy"}))}});
    let gateway = TestGateway::start_in(&settings, folder).await;
    // Without an earlier list: the first call lists the tools.
    let agent = Agent::of(Era::Stateless, &gateway.url, "{}").await;
    let answer = agent.call(REFUND, refund()).await;
    assert_eq!(code(&answer), Some("quarantined"), "{answer}");
    assert!(worked(&agent.call("shop__echo", json!({})).await));
    gateway.stop().await;
}

/// However many calls arrive at the moment of the change, none is decided by the previous definition.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_many_callers() {
    let pulled = start(Era::Handshake, Era::Stateless, json!({"before_call": "0s"})).await;
    let agent = std::sync::Arc::new(pulled.agent);
    pulled.server.shop.drift();
    let calls = pulled.server.shop.seen().calls_of("refund_order");
    let mut waiting = Vec::new();
    for _ in 0..64 {
        let agent = std::sync::Arc::clone(&agent);
        waiting.push(tokio::spawn(
            async move { agent.call(REFUND, refund()).await },
        ));
    }
    for answer in waiting {
        assert_eq!(code(&answer.await.unwrap()), Some("quarantined"));
    }
    assert_eq!(pulled.server.shop.seen().calls_of("refund_order"), calls);
    pulled.gateway.stop().await;
}
