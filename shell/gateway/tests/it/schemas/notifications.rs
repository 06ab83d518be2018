//! Messages without a request: subscriptions, changed lists, progress and log messages.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::{Revision, Sheet, assert_valid};
use crate::support::{Agent, Exchange, TestGateway, shop_of, until};

const RESOURCE: &str = "orders://today";

/// Listens for everything in the way of the agent's era.
async fn listening(sheet: &mut Sheet<'_>, agent: &Agent) -> Exchange {
    if agent.era == Era::Handshake {
        let method = "resources/subscribe";
        let uri = json!({"uri": RESOURCE});
        let done = sheet.ask(agent, method, method, uri).await;
        assert_eq!(done["result"], json!({}), "{done}");
        return agent.listen(None).await;
    }
    let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": [RESOURCE]});
    let params = json!({"notifications": wanted});
    let mut stream = agent.begin("subscriptions/listen", params).await;
    let acknowledged = stream.message().await;
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    sheet.unprompted("acknowledged", &acknowledged);
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_are_valid_in_every_revision() {
    let mut faults = Vec::new();
    for of_server in [Era::Handshake, Era::Stateless] {
        for revision in Revision::all() {
            let shop = shop_of(of_server);
            let gateway = TestGateway::before(&[("shop", &shop)]).await;
            let agent = revision.agent(&gateway.url, &[]).await;
            let mut sheet = Sheet::new(&revision);
            agent.tools().await;
            until("the gateway listens", || shop.shop.listeners() > 0).await;
            let mut stream = listening(&mut sheet, &agent).await;
            let mut fewer = toolwarden_demo::tools();
            fewer.pop();
            shop.shop.set_tools(&fewer);
            shop.shop.notify_list_changed();
            let changed = stream.message().await;
            assert_eq!(changed["method"], "notifications/tools/list_changed");
            sheet.unprompted("tools changed", &changed);
            let heard = updated(&shop.shop, &mut stream).await;
            sheet.unprompted("resource updated", &heard);
            progress(&mut sheet, &agent).await;
            if agent.era == Era::Handshake {
                let (method, uri) = ("resources/unsubscribe", json!({"uri": RESOURCE}));
                let done = sheet.ask(&agent, method, method, uri).await;
                assert_eq!(done["result"], json!({}), "{done}");
                let (method, level) = ("logging/setLevel", json!({"level": "info"}));
                let done = sheet.ask(&agent, method, method, level).await;
                assert_eq!(done["result"], json!({}), "{done}");
            }
            let stopping = tokio::spawn(gateway.stop());
            if agent.era == Era::Stateless {
                let last = stream.rest().await.pop().unwrap();
                sheet.answer("the end", "subscriptions/listen", &last);
            }
            drop(stream);
            stopping.await.unwrap();
            faults.extend(sheet.faults);
        }
    }
    assert_valid(&faults);
}

/// The next update of the resource: the server's stream may open a moment after the subscription.
async fn updated(shop: &toolwarden_demo::Shop, stream: &mut Exchange) -> Value {
    let told = tokio::spawn({
        let shop = shop.clone();
        async move {
            loop {
                shop.notify_resource_updated(RESOURCE);
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    });
    // News of lists may come first.
    let heard = loop {
        let heard = stream.message().await;
        if heard["method"] == "notifications/resources/updated" {
            break heard;
        }
    };
    told.abort();
    heard
}

async fn progress(sheet: &mut Sheet<'_>, agent: &Agent) {
    let params = json!({
        "name": "shop__export_report",
        "arguments": {"format": "csv", "steps": 2, "pause_ms": 1},
        "_meta": {"progressToken": "p"},
    });
    let mut all = agent.begin("tools/call", params).await.rest().await;
    let answer = all.pop().unwrap();
    assert!(!all.is_empty(), "no progress: {answer}");
    for message in &all {
        sheet.unprompted("progress", message);
    }
    sheet.answer("export_report", "tools/call", &answer);
}
