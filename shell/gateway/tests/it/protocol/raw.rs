//! The gateway forwards messages byte for byte.

use serde_json::json;
use serde_json::value::RawValue;
use toolwarden_mcp::Era;

use crate::support::{Agent, Exchange, TestGateway, shop_of};

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_stay_byte_for_byte_but_for_the_name() {
    const FIRST: &str = r#"{ "x-first" : 1.00e0, "name":"a\u0062" ,"inputSchema":{"type":"object", "z":1,"a":{} }, "_meta":{"k": [1.10] }, "execution":{"taskSupport":"optional"}}"#;
    const SECOND: &str = r#"{"inputSchema":{"type":"object"},"name":"second","description":"g\u00fcn\u0073tig","big":123456789012345678901234567890}"#;
    for of_server in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(of_server);
        shop.shop.set_raw_tools(&[raw(FIRST), raw(SECOND)]);
        for (prefix, first, second) in [
            ("never", r#""name":"a\u0062" ,"#, r#""name":"second""#),
            (
                "always",
                r#""name":"shop__ab","#,
                r#""name":"shop__second""#,
            ),
        ] {
            let settings = json!({"prefix": prefix});
            let gateway = TestGateway::before_with(&[("shop", &shop)], settings).await;
            let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
            let list = agent
                .begin("tools/list", json!({}))
                .await
                .text()
                .await
                .unwrap();
            let expected = [
                FIRST.replace(r#""name":"a\u0062" ,"#, first),
                SECOND.replace(r#""name":"second""#, second),
            ];
            let found = tools_of(&list);
            if prefix == "never" {
                assert_eq!(found, expected);
            } else {
                let bare = |texts: &[String; 2]| texts.each_ref().map(|it| squeezed(it));
                assert_eq!(bare(&found), bare(&expected));
                assert!(list.contains(r#""_meta":{"k": [1.10] }"#), "{list}");
                assert!(
                    list.contains(r#"{"type":"object", "z":1,"a":{} }"#),
                    "{list}"
                );
            }
            gateway.stop().await;
        }
    }
}

fn tools_of(list: &str) -> [String; 2] {
    #[derive(serde::Deserialize)]
    struct List {
        result: Tools,
    }
    #[derive(serde::Deserialize)]
    struct Tools {
        tools: [Box<RawValue>; 2],
    }
    let list: List = serde_json::from_str(list).unwrap();
    list.result.tools.map(|tool| tool.get().to_owned())
}

/// Between members of a rewritten object white space may go.
fn squeezed(text: &str) -> String {
    text.replace(' ', "")
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_and_results_stay_byte_for_byte() {
    let shop = shop_of(Era::Handshake);
    let settings = json!({"prefix": "never"});
    let gateway = TestGateway::before_with(&[("shop", &shop)], settings).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let params = r#"{ "name":"echo", "arguments" : {"b":1.00,"a":12345678901234567890123,"s":"\u0041"} ,"x-unknown":[ 1 ],"_meta":{"vendor/k": 2.50 }}"#;
    let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
    let mut answer = Exchange::new(agent.post_text(&body, &[]).await);
    assert_eq!(shop.shop.seen().last_params.unwrap().get(), params);
    assert_eq!(
        answer.text().await.unwrap(),
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[{{"type":"text","text":"echo"}}],"structuredContent":{{"params":{params}}}}}}}"#
        )
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_meta_keys_are_not_forwarded() {
    for of_server in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before_with(
            &[("shop", &shop)],
            json!({"identity": {"api_keys": [{"principal": "ci", "key": "k-0123456789abcdef0123456789abcdef"}]}}),
        )
        .await;
        let secret = "Bearer k-0123456789abcdef0123456789abcdef";
        let headers = [
            ("authorization", secret),
            ("cookie", "a=b"),
            (
                "traceparent",
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            ),
        ];
        let agent = Agent::open_with(&gateway.url, &json!({}), &headers).await;
        let params = json!({
            "name": "shop__echo",
            "arguments": {"a": 1},
            "vendor": true,
            "_meta": {"toolwarden/groups": ["default"], "toolwarden/x": 1, "vendor/k": 2},
        });
        let answer = agent.ask("tools/call", params).await;
        let sent = &answer["result"]["structuredContent"]["params"];
        assert_eq!(
            (&sent["name"], &sent["vendor"]),
            (&json!("echo"), &json!(true)),
            "{answer}"
        );
        let meta = sent["_meta"].as_object().unwrap();
        assert_eq!(meta["vendor/k"], 2);
        assert!(
            meta.keys().all(|key| !key.starts_with("toolwarden/")),
            "{meta:?}"
        );
        let seen = shop.shop.seen();
        assert_eq!(
            seen.last_header("traceparent"),
            Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        );
        for headers in seen.headers() {
            for (name, value) in headers {
                assert!(name != "authorization" && name != "cookie", "{name}");
                assert!(!value.contains("0123456789abcdef"), "{name}: {value}");
            }
        }
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_come_back_as_they_were_written() {
    for of_agent in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(Era::Handshake);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        let agent = Agent::of(of_agent, &gateway.url, "{}").await;
        let headers: &[(&str, &str)] = match of_agent {
            Era::Handshake => &[],
            Era::Stateless => &[
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", "shop__echo"),
            ],
        };
        let params = agent.params(json!({"name": "shop__echo"}));
        for id in [
            "0",
            "-7",
            "9007199254740993",
            r#""a\u0041""#,
            r#""""#,
            r#""shop__1""#,
        ] {
            let body =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
            let text = agent.post_text(&body, headers).await.text().await.unwrap();
            let begins = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#);
            assert!(text.starts_with(&begins), "{of_agent:?}: {text}");
        }
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_members_are_refused() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    for params in [
        r#"{"name":"shop__echo","name":"shop__refund_order"}"#,
        r#"{"name":"shop__echo","arguments":{"a":1,"a":2}}"#,
        r#"{"name":"shop__echo","arguments":{"x":[{"a":1,"\u0061":2}]}}"#,
        r#"{"name":"shop__echo","arguments":{},"arguments":{"a":2}}"#,
        r#"["shop__echo"]"#,
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let mut refused = Exchange::new(agent.post_text(&body, &[]).await);
        let message = refused.message().await;
        let code = message["error"]["code"].as_i64();
        assert!(matches!(code, Some(-32602 | -32600)), "{params}: {message}");
    }
    assert_eq!(shop.shop.seen().calls.len(), 0);
    gateway.stop().await;
}
