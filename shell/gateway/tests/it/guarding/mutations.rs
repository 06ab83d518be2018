//! The 23 realistic mutations of a tool, against a running gateway.

use serde_json::json;
use toolwarden_mcp::Era;
use toolwarden_settings::{OnDrift, WatchSettings};

use super::{ERAS, at_with, code, worked};
use crate::support::{Agent, TestGateway, shop_of};

#[tokio::test(flavor = "multi_thread")]
async fn every_mutation_is_caught() {
    let Some(vectors) = toolwarden_testkit::read_vectors("mutations.json") else {
        return;
    };
    let cases = vectors["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 23);
    let base = &vectors["base"];
    let arguments = json!({"to": "a@corp.example"});
    for servers in ERAS {
        let server = shop_of(servers);
        server.shop.set_tools(std::slice::from_ref(base));
        let watch = json!({"watch": {"before_call": "0s"}});
        let settings = json!({"servers": {"mail": at_with(&server, watch)}});
        let gateway = TestGateway::start(&settings).await;
        let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
        assert!(worked(&agent.call("mail__send", arguments.clone()).await));
        let mut notices = gateway.gateway.watch().subscribe_alerts();
        let defaults = WatchSettings::default().on_drift;
        let mut withheld = 0;
        for case in cases {
            let name = &case["name"];
            server
                .shop
                .set_tools(std::slice::from_ref(&case["definition"]));
            let calls = server.shop.seen().calls_of("send");
            let answer = agent.call("mail__send", arguments.clone()).await;
            let notice = notices
                .try_recv()
                .unwrap_or_else(|_| panic!("{name}: no alert"));
            assert_eq!((&*notice.server, &*notice.tool), ("mail", "send"), "{name}");
            let called = server.shop.seen().calls_of("send") - calls;
            if defaults[&notice.class] == OnDrift::Serve {
                // Reported and served: the new definition rejects nothing that worked.
                assert!(worked(&answer), "{name}: {answer}");
                assert_eq!(agent.tools().await, ["mail__send"], "{name}");
            } else {
                withheld += 1;
                assert_eq!(code(&answer), Some("quarantined"), "{name}: {answer}");
                assert_eq!(called, 0, "{name}");
                assert_eq!(agent.tools().await, [""; 0], "{name}");
            }
            server.shop.set_tools(std::slice::from_ref(base));
            let answer = agent.call("mail__send", arguments.clone()).await;
            assert!(worked(&answer), "{name}, put back: {answer}");
            assert!(notices.try_recv().is_err(), "{name}: one alert");
        }
        assert_eq!(
            withheld, 18,
            "the other five accept more than before, and are reported"
        );
        gateway.stop().await;
    }
}
