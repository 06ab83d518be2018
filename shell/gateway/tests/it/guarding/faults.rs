//! Servers that die, hang, stall, flood and send garbage. Every call still ends, and other servers keep working.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use toolwarden_demo::{DemoServer, ShopOptions};
use toolwarden_mcp::Era;

use super::{at_with, code, echoing, rows, worked};
use crate::support::{Agent, TestGateway, shop_of, until, until_async};

/// The limits for a misbehaving server.
fn held(mut entry: Value) -> Value {
    entry["timeouts"] = json!({"request": "2s", "list": "3s", "start": "20s"});
    entry["restart"] = json!({"first": "10ms", "most": "50ms"});
    entry["breaker"] = json!({"failures": 1, "pause": "100ms"});
    entry["limits"] = any_amount();
    entry
}

/// Limits that no flood of these tests reaches, so that other limits apply.
fn any_amount() -> Value {
    json!({"messages_per_minute": 1_000_000_000, "bytes_per_minute": "1024GiB"})
}

/// Each of these calls fails in time with this code, and the server works again afterwards.
async fn go_wrong(entry: Value, cases: &[(&str, &str)]) -> TestGateway {
    let shop = shop_of(Era::Handshake);
    let servers = json!({"bad": held(entry), "good": at_with(&shop, json!({}))});
    let gateway = TestGateway::start(&json!({"servers": servers})).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    until_async("both are listed", async || agent.tools().await.len() > 7).await;
    for (tool, expected) in cases {
        let began = Instant::now();
        let name = format!("bad__{tool}");
        let call = agent.call(&name, json!({}));
        let beside = agent.call("good__echo", json!({}));
        let (answer, beside) = tokio::join!(call, beside);
        assert_eq!(code(&answer), Some(*expected), "{tool}: {answer}");
        assert!(worked(&beside), "{tool}: {beside}");
        assert!(began.elapsed() < Duration::from_secs(15), "{tool}");
        let list = agent.tools().await;
        assert!(list.contains(&"good__echo".to_owned()), "{tool}: {list:?}");
        until_async("it is well again", async || {
            worked(&agent.call("bad__t", json!({})).await)
        })
        .await;
    }
    let rows = rows(&gateway.gateway);
    let count = |kind: &str| rows.iter().filter(|row| row.kind == kind).count();
    assert_eq!(count("decision"), count("outcome"), "each has its end");
    gateway
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_misbehave() {
    let entry = json!({"command": "python3", "args": ["-c", include_str!("faulty.py")], "sessions": "shared"});
    let cases = [
        ("die", "lost"),
        ("hang", "timeout"),
        ("cut", "timeout"),
        ("huge", "lost"),
        ("drip", "timeout"),
    ];
    let gateway = go_wrong(entry, &cases).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    assert!(
        worked(&agent.call("bad__noise", json!({})).await),
        "noise is not an answer"
    );
    let upstream = gateway.gateway.upstreams().swap_remove(0);
    let pids = upstream.status().pids;
    assert_eq!(pids.len(), 1, "one at a time");
    // Killed during a call.
    let call = agent.call("bad__hang", json!({}));
    let kill = async {
        until("it is in flight", || upstream.status().in_flight == 1).await;
        let status = std::process::Command::new("kill")
            .args(["-9", &pids[0].to_string()])
            .status();
        assert!(status.unwrap().success());
    };
    let (answer, ()) = tokio::join!(call, kill);
    assert_eq!(code(&answer), Some("lost"), "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("may have been carried out"), "{text}");
    assert_eq!(
        rows(&gateway.gateway).last().unwrap().word(),
        "outcome failed"
    );
    gateway.stop().await;
    until("none is left", || pids.iter().all(|pid| !exists(*pid))).await;
}

/// The caller gets the full error of a crash at once; it is history once the server has recovered.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_crashes_says_why() {
    let mut entry = held(json!({
        "command": "python3",
        "args": ["-c", include_str!("faulty.py")],
        "env": {"TOKEN": "hunter2-and-more"},
        "sessions": "shared",
    }));
    entry["breaker"] = json!({"failures": 5});
    let gateway = TestGateway::start(&json!({"servers": {"bad": entry}})).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    until_async("it is listed", async || agent.tools().await.len() == 7).await;
    let began = Instant::now();
    let answer = agent.call("bad__die", json!({})).await;
    assert!(began.elapsed() < Duration::from_secs(2), "not by time-out");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    let expected = "it exited (exit status: 3) before answering `tools/call`; its error output ends: \
                    cannot go on with ***";
    assert!(text.contains(expected), "{text}");
    let outcome = rows(&gateway.gateway).pop().unwrap();
    assert_eq!(outcome.word(), "outcome failed");
    assert!(!outcome.body.to_string().contains("hunter2"), "{outcome:?}");
    until_async("it is back", async || {
        worked(&agent.call("bad__t", json!({})).await)
    })
    .await;
    let status = gateway.gateway.upstreams().swap_remove(0).status();
    assert!(status.restarts >= 1, "{status:?}");
    let error = status.last_error.unwrap().text;
    assert!(
        error.contains("exit status: 3") && !error.contains("hunter2"),
        "{error}"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_exits_between_calls_says_how() {
    const EXITS: &str = "import os, threading; threading.Timer(0.5, lambda: os._exit(4)).start()\n";
    let program = format!("{EXITS}{}", include_str!("faulty.py"));
    let entry = json!({"command": "python3", "args": ["-c", program], "sessions": "shared"});
    let gateway = TestGateway::start(&json!({"servers": {"bad": entry}})).await;
    let last_error = || {
        let status = gateway.gateway.upstreams().swap_remove(0).status();
        status.last_error.map(|it| it.text).unwrap_or_default()
    };
    until("the log can say how it ended", || {
        last_error().starts_with("it exited (exit status: 4)")
    })
    .await;
    gateway.stop().await;
}

fn exists(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// An HTTP server that misbehaves as the name of the tool says.
async fn faulty() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let given_up = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&given_up);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let counter = Arc::clone(&counter);
            tokio::spawn(async move {
                if talk(stream).await.is_err() {
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    (url, given_up)
}

async fn talk(mut stream: TcpStream) -> std::io::Result<()> {
    let mut got = Vec::new();
    loop {
        let (head, body) = loop {
            let text = String::from_utf8_lossy(&got).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.to_lowercase();
                let length = length.split("content-length: ").nth(1).unwrap_or("0");
                let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
                if body.len() >= length {
                    break (head.to_owned(), body.to_owned());
                }
            }
            let mut part = vec![0; 65_536];
            let read = stream.read(&mut part).await?;
            if read == 0 {
                return Ok(());
            }
            got.extend_from_slice(&part[..read]);
        };
        got.clear();
        if !head.starts_with("POST") {
            stream
                .write_all(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n")
                .await?;
            continue;
        }
        let message: Value = serde_json::from_str(&body).unwrap();
        let result = match message["method"].as_str().unwrap() {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "faulty", "version": "1"}}),
            "tools/list" => {
                let names = [
                    "t", "endless", "comments", "huge", "garbage", "drip", "short",
                ];
                json!({"tools": echoing(&names)})
            }
            "tools/call" if message["params"]["name"] != "t" => {
                return misbehave(&mut stream, &message).await;
            }
            "tools/call" => json!({"content": []}),
            _ if message.get("id").is_none() => {
                stream
                    .write_all(b"HTTP/1.1 202 Yes\r\ncontent-length: 0\r\n\r\n")
                    .await?;
                continue;
            }
            _ => {
                stream
                    .write_all(b"HTTP/1.1 400 No\r\ncontent-length: 0\r\n\r\n")
                    .await?;
                continue;
            }
        };
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
    }
}

async fn misbehave(stream: &mut TcpStream, message: &Value) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}});
    match message["params"]["name"].as_str().unwrap() {
        "endless" => {
            let note = json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "info", "data": "x".repeat(1000)}});
            let event = format!("data: {note}\n\n");
            loop {
                stream.write_all(event.as_bytes()).await?;
            }
        }
        "comments" => loop {
            stream.write_all(b": still here\n\n").await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        },
        "huge" => {
            stream.write_all(b"data: ").await?;
            let part = vec![b'a'; 1 << 20];
            for _ in 0..100 {
                stream.write_all(&part).await?;
            }
            Ok(())
        }
        "garbage" => {
            stream
                .write_all(b"data: }{\n\ndata: [\n\n\xff\xfe\n\n")
                .await
        }
        "drip" => {
            for byte in format!("data: {answer}\n\n").bytes() {
                stream.write_all(&[byte]).await?;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sites_that_misbehave() {
    let (url, given_up) = faulty().await;
    let cases = [
        ("endless", "timeout"),
        ("comments", "timeout"),
        ("huge", "lost"),
        ("garbage", "protocol"),
        ("drip", "timeout"),
        ("short", "protocol"),
    ];
    let gateway = go_wrong(json!({"url": url}), &cases).await;
    // The gateway closed streams that would not end.
    until("they are closed", || given_up.load(Ordering::Relaxed) >= 3).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_tools() {
    let server = DemoServer::start(ShopOptions {
        page: 500,
        ..ShopOptions::default()
    })
    .unwrap();
    let tools: Vec<Value> = (0..10_000)
        .map(|n| {
            json!({"name": format!("tool_{n}"), "description": format!("Does the thing number {n}."),
                "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "maximum": n}}}})
        })
        .collect();
    server.shop.set_tools(&tools);
    let entry = at_with(
        &server,
        json!({"timeouts": {"list": "120s", "request": "60s"}}),
    );
    let gateway = TestGateway::start(&json!({"servers": {"s": entry}})).await;
    let agent = Agent::of(Era::Stateless, &gateway.url, "{}").await;
    until_async("all are listed", async || {
        agent.tools().await.len() == 10_000
    })
    .await;
    let began = Instant::now();
    for n in [0, 4_999, 9_999] {
        assert!(worked(
            &agent.call(&format!("s__tool_{n}"), json!({"n": n})).await
        ));
        let refused = agent
            .call(&format!("s__tool_{n}"), json!({"n": n + 1}))
            .await;
        assert_eq!(code(&refused), Some("invalid_input"));
    }
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "calls do not pay for the list"
    );
    // One of them changes: it is withheld, and the others are served.
    let mut changed = tools;
    changed[7]["description"] = json!("Does something else.");
    server.shop.set_tools(&changed);
    server.shop.notify_list_changed();
    until_async("it is withheld", async || {
        agent.tools().await.len() == 9_999
    })
    .await;
    assert_eq!(
        code(&agent.call("s__tool_7", json!({})).await),
        Some("quarantined")
    );
    gateway.stop().await;
}

/// A server that hangs delays neither the lists nor the calls of other servers.
#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_server_delays_no_other() {
    let (hung, good) = (shop_of(Era::Handshake), shop_of(Era::Stateless));
    hung.shop.stop_answering();
    let gateway = TestGateway::start(&json!({"servers": {
        "hung": at_with(&hung, json!({"timeouts": {"list": "300ms", "start": "30s"}})),
        "good": at_with(&good, json!({})),
    }}))
    .await;
    for era in super::ERAS {
        let began = Instant::now();
        let agent = Agent::of(era, &gateway.url, "{}").await;
        assert_eq!(agent.tools().await.len(), 7);
        assert!(worked(&agent.call("good__echo", json!({})).await));
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?}",
            began.elapsed()
        );
    }
    hung.shop.recover();
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    until_async("it is listed, too", async || {
        agent.tools().await.len() == 14
    })
    .await;
    // Once it has been listed, the last list is shown while it hangs again.
    hung.shop.stop_answering();
    assert_eq!(agent.tools().await.len(), 14);
    hung.shop.recover();
    gateway.stop().await;
}

/// An agent that leaves in the middle of a flood does not keep it going.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_ends_with_its_agent() {
    let (url, given_up) = faulty().await;
    let bad = json!({"url": url, "limits": any_amount()});
    let gateway = TestGateway::start(&json!({"servers": {"bad": bad}})).await;
    let agent = Agent::of(Era::Stateless, &gateway.url, "{}").await;
    assert_eq!(agent.tools().await.len(), 7);
    let flood = agent.call("bad__endless", json!({}));
    assert!(
        tokio::time::timeout(Duration::from_millis(500), flood)
            .await
            .is_err()
    );
    until("it is closed", || given_up.load(Ordering::Relaxed) >= 1).await;
    until("it is written down", || {
        rows(&gateway.gateway).last().unwrap().word() == "outcome abandoned"
    })
    .await;
    gateway.stop().await;
}
