//! Advertised extensions work, and extensions that do not work are not advertised.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolwarden_mcp::Era;

use super::{Peer, servers, tool};
use crate::support::{Agent, TestGateway, until_async};

const SKILLS: &str = "io.modelcontextprotocol/skills";

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// A server with one skill of one file. What the file says and what the skill promises may differ.
fn skilled(promised: &str, text: &str, server: &str) -> Value {
    let uri = format!("skill://{server}/SKILL.md");
    let skill = json!({
        "uri": uri,
        "frontmatter": {"name": server, "description": "Explains."},
        "resources": [{"uri": uri, "digest": digest(promised), "size": promised.len()}],
    });
    json!({
        "tools": [tool("base", "Does.")],
        "extensions": {SKILLS: {}, "com.example/both": {}},
        "skills": [skill],
        "files": {uri: text},
    })
}

async fn advertised(era: Era, gateway: &TestGateway) -> Vec<String> {
    let capabilities = match era {
        Era::Handshake => {
            Agent::of(era, &gateway.url, "{}").await.connect_request["capabilities"].clone()
        }
        Era::Stateless => {
            let agent = Agent::of(era, &gateway.url, "{}").await;
            agent.result("server/discover", json!({})).await["capabilities"].clone()
        }
    };
    let extensions = capabilities["extensions"].as_object().cloned();
    let mut names: Vec<String> = extensions.unwrap_or_default().keys().cloned().collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_go_to_the_one_server_that_declares_their_extension() {
    let described = |more: Value| {
        let mut extensions = json!({"com.example/both": {}});
        extensions
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let methods = ["thing/do", "other/do", "both/do"];
        json!({"tools": [tool("base", "Does.")], "extensions": extensions, "methods": methods})
    };
    let one = Peer::new("one", described(json!({"com.example/thing": {}})));
    let two = Peer::new("two", described(json!({"com.example/other": {"a": 1}})));
    let gateway = TestGateway::start(&servers(&[&one, &two])).await;
    for era in [Era::Handshake, Era::Stateless] {
        let names = ["com.example/other", "com.example/thing"];
        assert_eq!(advertised(era, &gateway).await, names, "{era:?}");
        let agent = Agent::of(era, &gateway.url, "{}").await;
        for (method, by) in [("thing/do", "one"), ("other/do", "two")] {
            let result = agent.result(method, json!({})).await;
            assert_eq!(result["by"], by, "{era:?}");
        }
        for method in ["both/do", "nothing/do"] {
            let answer = agent.ask(method, json!({})).await;
            assert_eq!(
                answer["error"]["code"], -32601,
                "{era:?} {method}: {answer}"
            );
        }
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_of_all_servers_are_listed_read_and_pinned() {
    let one = Peer::new("one", skilled("first", "first", "one"));
    let two = Peer::new("two", skilled("second", "forged", "two"));
    let gateway = TestGateway::start(&servers(&[&one, &two])).await;
    for era in [Era::Handshake, Era::Stateless] {
        assert_eq!(advertised(era, &gateway).await, [SKILLS], "{era:?}");
        let agent = Agent::of(era, &gateway.url, "{}").await;
        let listed = agent.names("skills/list", "skills", "uri").await;
        assert_eq!(
            listed,
            ["skill://one/SKILL.md", "skill://two/SKILL.md"],
            "{era:?}"
        );
        let got = agent
            .result("skills/get", json!({"uri": "skill://two/SKILL.md"}))
            .await;
        assert_eq!(got["skill"]["frontmatter"]["name"], "two", "{era:?}");
        let unknown = agent
            .ask("skills/get", json!({"uri": "skill://no/SKILL.md"}))
            .await;
        assert_eq!(unknown["error"]["code"], -32602, "{era:?}");
        let read = agent
            .result("resources/read", json!({"uri": "skill://one/SKILL.md"}))
            .await;
        assert_eq!(read["contents"][0]["text"], "first", "{era:?}");
        let forged = agent
            .ask("resources/read", json!({"uri": "skill://two/SKILL.md"}))
            .await;
        let message = forged["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("digest"), "{era:?}: {forged}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_that_changed_is_withheld() {
    let one = Peer::new("one", skilled("first", "first", "one"));
    let two = Peer::new("two", skilled("second", "second", "two"));
    let gateway = TestGateway::start(&servers(&[&one, &two])).await;
    let agent = Agent::of(Era::Stateless, &gateway.url, "{}").await;
    assert_eq!(agent.names("skills/list", "skills", "uri").await.len(), 2);
    let folder = gateway.stop().await;
    one.describe(skilled("rewritten", "rewritten", "one"));
    let gateway = TestGateway::start_in(&servers(&[&one, &two]), folder).await;
    let agent = Agent::of(Era::Stateless, &gateway.url, "{}").await;
    until_async("it is withheld", async || {
        agent.names("skills/list", "skills", "uri").await == ["skill://two/SKILL.md"]
    })
    .await;
    let read = json!({"uri": "skill://one/SKILL.md"});
    for method in ["resources/read", "skills/get"] {
        let refused = agent.ask(method, read.clone()).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("withheld until it is approved"),
            "{method}: {refused}"
        );
    }
    gateway.stop().await;
}
