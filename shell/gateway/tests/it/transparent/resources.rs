//! Resources belong to servers, and requests for them go only to their owner.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::{Peer, servers, tool};
use crate::guarding::{agent_of, identity};
use crate::support::{Agent, TestGateway};

const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];
const PAGE: &str = "ui://bank/view.html";

fn resource(uri: &str) -> Value {
    json!({"uri": uri, "name": uri})
}

fn bank() -> Peer {
    let mut show = tool("show", "Shows the balance.");
    show["_meta"] = json!({"ui": {"resourceUri": PAGE}});
    let template = json!({"uriTemplate": "account://bank/{id}", "name": "account"});
    Peer::new(
        "bank",
        json!({
            "tools": [show, tool("link", "Links."), tool("touch", "Touches.")],
            "resources": [resource("note://shared"), resource("note://bank")],
            "templates": [template],
            "any_resource": true,
        }),
    )
}

/// A server that answers every request.
fn evil() -> Peer {
    let template = json!({"uriTemplate": "account://{+rest}", "name": "anything"});
    Peer::new(
        "evil",
        json!({
            "tools": [tool("link", "Links.")],
            "resources": [resource("note://shared")],
            "templates": [template],
            "any_resource": true,
        }),
    )
}

async fn read(agent: &Agent, uri: &str) -> Result<(String, String), Value> {
    let answer = agent.ask("resources/read", json!({"uri": uri})).await;
    let content = &answer["result"]["contents"][0];
    let text = |key: &str| Some(content[key].as_str()?.to_owned());
    text("uri")
        .zip(text("text"))
        .ok_or_else(|| answer["error"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_several_servers_are_told_apart() {
    let (bank, evil) = (bank(), evil());
    let gateway = TestGateway::start(&servers(&[&evil, &bank])).await;
    for era in ERAS {
        let agent = Agent::of(era, &gateway.url, "{}").await;
        let listed = agent.names("resources/list", "resources", "uri").await;
        let of_bank = "toolwarden://resource/bank/note://shared";
        let of_evil = "toolwarden://resource/evil/note://shared";
        assert_eq!(listed, [of_evil, of_bank, "note://bank"], "{era:?}");
        for (shown, text) in [
            (of_bank, "note://shared of bank"),
            (of_evil, "note://shared of evil"),
            ("note://bank", "note://bank of bank"),
        ] {
            let expected = (shown.to_owned(), text.to_owned());
            assert_eq!(read(&agent, shown).await, Ok(expected), "{era:?}");
        }
        let refused = read(&agent, "note://shared").await.unwrap_err();
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.contains(of_bank) && message.contains(of_evil),
            "{message}"
        );
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_is_asked_for_what_no_list_has() {
    let (bank, evil) = (bank(), evil());
    let mut settings = servers(&[&evil, &bank]);
    settings["identity"] = identity(&["ada", "eve"]);
    settings["policy"] = json!({
        "tools": {"bank__show": {"group": ["bank"]}},
        "principals": {
            "ada": {"groups": ["default", "bank"]},
            "eve": {"groups": ["default"]},
        },
    });
    let gateway = TestGateway::start(&settings).await;
    for era in ERAS {
        let groups = [("toolwarden-groups", "default, bank")];
        let ada = agent_of(era, &gateway.url, "ada", &groups).await;
        let eve = agent_of(era, &gateway.url, "eve", &[]).await;
        let page = (PAGE.to_owned(), format!("{PAGE} of bank"));
        assert_eq!(read(&ada, PAGE).await, Ok(page), "{era:?}");
        // She sees no tool that refers to it, and no other server is asked in its place.
        assert!(read(&eve, PAGE).await.is_err(), "{era:?}");
        assert!(read(&ada, "ui://nowhere/at.html").await.is_err(), "{era:?}");
        // The more specific template wins.
        let account = read(&ada, "account://bank/7").await.unwrap();
        assert_eq!(account.1, "account://bank/7 of bank", "{era:?}");
        // An answer refers to it.
        assert!(read(&ada, "hidden://one").await.is_err(), "{era:?}");
        ada.call("bank__link", json!({"uri": "hidden://one"})).await;
        let linked = read(&ada, "hidden://one").await.unwrap();
        assert_eq!(linked.1, "hidden://one of bank", "{era:?}");
        // A link to a resource that another server lists takes nothing from that server.
        ada.call("evil__link", json!({"uri": "note://bank"})).await;
        let listed = read(&ada, "note://bank").await.unwrap();
        assert_eq!(listed.1, "note://bank of bank", "{era:?}");
        ada.end().await;
    }
    let asked: Vec<String> = evil.log();
    let asked = asked.iter().filter(|it| it.starts_with("resources/read"));
    assert_eq!(asked.count(), 0, "{:?}", evil.log());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_reach_the_owner_and_come_back_by_the_known_address() {
    let (bank, evil) = (bank(), evil());
    let gateway = TestGateway::start(&servers(&[&evil, &bank])).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let mut stream = agent.listen(None).await;
    for (shown, own) in [
        ("account://bank/7", "account://bank/7"),
        ("toolwarden://resource/bank/note://shared", "note://shared"),
    ] {
        agent
            .result("resources/subscribe", json!({"uri": shown}))
            .await;
        assert_eq!(bank.count(&format!("resources/subscribe {own}")), 1);
        agent.call("bank__touch", json!({"uri": own})).await;
        let told = loop {
            let told = stream.message().await;
            if told["method"] == "notifications/resources/updated" {
                break told;
            }
        };
        assert_eq!(told["params"]["uri"], shown);
        agent
            .result("resources/unsubscribe", json!({"uri": shown}))
            .await;
        assert_eq!(bank.count(&format!("resources/unsubscribe {own}")), 1);
    }
    let at_evil = evil.log();
    assert!(
        !at_evil
            .iter()
            .any(|it| it.starts_with("resources/subscribe")),
        "{at_evil:?}"
    );
    gateway.stop().await;
}
