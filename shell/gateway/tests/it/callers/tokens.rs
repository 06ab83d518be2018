//! Tokens of issuers, over real requests.

use serde_json::{Value, json};
use toolwarden_gateway::runtime::{RunningGateway, load_policy};
use toolwarden_mcp::Era;

use super::{ISSUER, bearer, issuer};
use crate::guarding::{identity, rows};
use crate::support::{Agent, TestGateway, at, settings_in, shop_of};

fn policy() -> Value {
    json!({
        "tools": {"s__echo": {"groups": ["staff"]}},
        "groups": {"staff": {}},
        "roles": {"clerk": {"groups": ["staff"], "default_groups": ["staff"]}},
        "principals": {"*": {"groups": []}, "named": {"groups": []}},
    })
}

fn settings(server: &Value) -> Value {
    let mut callers = identity(&["ada"]);
    let roles = json!({"roles": {"claim": "groups", "map": {"admins": "clerk"}}});
    callers["jwt"] = json!([issuer(roles)]);
    json!({"servers": {"s": server}, "identity": callers, "policy": policy()})
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_of_a_token_are_roles_of_the_policy() {
    let server = shop_of(Era::Handshake);
    let gateway = TestGateway::start(&settings(&at(&server))).await;
    for era in [Era::Handshake, Era::Stateless] {
        for (subject, claims, may) in [
            ("alice", json!({"groups": ["admins"]}), true),
            // The same person with a lesser token, and then with the first one again.
            ("alice", json!({"groups": ["others"]}), false),
            ("alice", json!({}), false),
            ("alice", json!({"groups": ["admins", "others"]}), true),
            // A token does not change the policy's rules for a principal by name.
            ("named", json!({"groups": ["admins"]}), false),
        ] {
            let bearer = bearer(subject, claims.clone());
            let headers = [("authorization", bearer.as_str())];
            let agent = match era {
                Era::Handshake => Agent::open_with(&gateway.url, &json!({}), &headers).await,
                Era::Stateless => Agent::stateless_with(&gateway.url, &json!({}), &headers),
            };
            let sees = agent.tools().await.contains(&"s__echo".to_owned());
            let answer = agent.call("s__echo", json!({})).await;
            let worked = answer["result"].is_object() && answer["result"]["isError"] != true;
            assert_eq!(
                (sees, worked),
                (may, may),
                "{era:?} {subject} {claims}: {answer}"
            );
            let url = format!("{}/api/v1/explain?tool=s__echo", gateway.root());
            let told = crate::support::http(&url)
                .get(&url)
                .header("authorization", &bearer);
            let told: Value = told
                .send()
                .await
                .unwrap()
                .text()
                .await
                .unwrap()
                .parse()
                .unwrap();
            assert_eq!(told["visible"], may, "{told}");
        }
    }
    let decisions = rows(&gateway.gateway);
    let decisions = decisions
        .iter()
        .filter(|row| row.word() == "decision allowed");
    let issuers: Vec<String> = decisions.map(|row| row.issuer()).collect();
    assert_eq!(issuers, [ISSUER; 4]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_names_a_key_owner_is_refused_and_recorded() {
    let server = shop_of(Era::Handshake);
    let mut settings = settings(&at(&server));
    settings["identity"]["admins"] = json!(["ada"]);
    let gateway = TestGateway::start(&settings).await;
    let url = format!("{}/api/v1/audit", gateway.root());
    let ask = async |subject: &str| {
        let bearer = bearer(subject, json!({}));
        let http = crate::support::http(&url);
        http.get(&url)
            .header("authorization", bearer)
            .send()
            .await
            .unwrap()
    };
    assert_eq!(ask("alice").await.status(), 403);
    let refused = ask("ada").await;
    assert_eq!(refused.status(), 403);
    let text = refused.text().await.unwrap();
    assert!(text.contains("belongs to another source"), "{text}");
    let recorded = rows(&gateway.gateway);
    let recorded = recorded
        .iter()
        .filter(|row| row.word() == "escalation principal_taken");
    let recorded: Vec<Value> = recorded.map(|row| row.said("claimed")).collect();
    assert_eq!(recorded, ["ada"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_have_to_be_in_the_policy() {
    let server = shop_of(Era::Handshake);
    let mut settings = settings(&at(&server));
    settings["identity"]["jwt"][0]["roles"]["map"] = json!({"admins": ["clerk", "clark"]});
    let folder = tempfile::TempDir::new().unwrap();
    let loaded = settings_in(&settings, folder.path());
    let policy = load_policy(&loaded, &folder.path().join("toolwarden.yaml")).unwrap();
    let error = RunningGateway::start(loaded, policy, Value::Null)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`identity.jwt` gives the role `clark` for `admins`, and the policy has no such role; add it under `roles` \
         in the policy"
    );
}
