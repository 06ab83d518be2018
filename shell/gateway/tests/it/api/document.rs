use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};
use toolwarden_gateway::api::openapi_document;
use toolwarden_testkit::{Registry, installed};

use super::fixture::{AllowedHosts, Who};

/// Every operation with a request that it answers.
#[tokio::test(flavor = "multi_thread")]
async fn every_operation_of_the_document_answers() {
    let allowed_hosts = AllowedHosts::start().await;
    let (_, allowed) = allowed_hosts
        .post(
            Who::Root,
            "/api/v1/decide",
            json!({"tool": "shop__list_folders", "session": "s"}),
        )
        .await;
    let call = allowed["call"].clone();
    allowed_hosts
        .post(
            Who::Root,
            "/api/v1/complete",
            json!({"call": call, "outcome": "succeeded"}),
        )
        .await;
    let moving = json!({"tool": "shop__search_orders", "session": "s", "groups": ["read"]});
    let (_, allowed) = allowed_hosts
        .post(Who::Root, "/api/v1/decide", moving)
        .await;
    let result = json!({"orders": [], "matches": 0});
    let told = json!({"call": allowed["call"], "outcome": "succeeded", "result": result});
    allowed_hosts
        .post(Who::Root, "/api/v1/complete", told)
        .await;
    let alert = allowed_hosts.drift().await;
    let id = alert["id"].as_str().unwrap();
    for path in [
        "/api/v1/tools",
        "/api/v1/tools/shop__list_folders",
        "/api/v1/servers",
        "/api/v1/servers/shop",
        "/api/v1/baselines",
        "/api/v1/baselines/shop/refund_order",
        "/api/v1/changes",
        "/api/v1/alerts",
        &format!("/api/v1/alerts/{id}"),
        &format!("/api/v1/alerts/{id}/deliveries"),
        "/api/v1/deliveries/status",
        "/api/v1/groups",
        "/api/v1/states",
        "/api/v1/sessions",
        "/api/v1/sessions/s",
        "/api/v1/explain?tool=shop__refund_order",
        "/api/v1/audit",
        "/api/v1/config",
        "/api/v1/health",
        "/api/v1/ready",
        "/api/v1/openapi.json",
        "/api/v1/version",
        "/metrics",
    ] {
        allowed_hosts.root(path).await;
    }
    for (path, body) in [
        ("/api/v1/servers/shop/retry", json!({})),
        (
            "/api/v1/approve",
            json!({"alerts": [id], "reason": "looked at"}),
        ),
        ("/api/v1/audit/verify", json!({})),
    ] {
        let (status, answer) = allowed_hosts.post(Who::Root, path, body).await;
        assert_eq!(status, 200, "{path}: {answer}");
    }
    let (status, answer) = allowed_hosts
        .ask(Who::Root, "DELETE", "/api/v1/sessions/s", None)
        .await;
    assert_eq!(status, 200, "{answer}");

    let document = openapi_document();
    assert_eq!(allowed_hosts.asked(), operations(&document));
    assert_eq!(allowed_hosts.root("/api/v1/openapi.json").await, document);
    allowed_hosts.stop().await;
}

#[test]
fn the_document_names_everything_it_refers_to() {
    let document = openapi_document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut referred = BTreeSet::new();
    references(&document, &mut referred);
    let known: BTreeSet<String> = schemas.keys().cloned().collect();
    assert_eq!(
        referred, known,
        "every schema is used, and every one that is used is there"
    );
    for schema in schemas.values() {
        let mut schema = schema.clone();
        schema["components"] = document["components"].clone();
        jsonschema::options().offline().build(&schema).unwrap();
    }
    let mut ids = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id), "{id} twice");
            assert!(!operation["summary"].as_str().unwrap().is_empty(), "{id}");
            let named = path.split('/').filter_map(|it| it.strip_prefix('{'));
            let named: Vec<&str> = named.map(|it| it.trim_end_matches('}')).collect();
            let parameters = operation["parameters"].as_array().unwrap();
            let in_path = parameters.iter().filter(|it| it["in"] == "path");
            let in_path: Vec<&str> = in_path.map(|it| it["name"].as_str().unwrap()).collect();
            assert_eq!(in_path, named, "{path}");
        }
    }
}

#[test]
fn a_validator_of_others_accepts_the_document() {
    let Some(programs) = installed(Registry::PyPi, &["openapi-spec-validator==0.9.0"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("openapi.json");
    std::fs::write(&path, openapi_document().to_string()).unwrap();
    let ran = Command::new(programs.join("openapi-spec-validator"))
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(
        ran.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

fn operations(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().keys();
        methods.map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    operations.collect()
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.insert(reference.rsplit('/').next().unwrap().to_owned());
            }
            members.values().for_each(|it| references(it, found));
        }
        Value::Array(items) => items.iter().for_each(|it| references(it, found)),
        _ => {}
    }
}
