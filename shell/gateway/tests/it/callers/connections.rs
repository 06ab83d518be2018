//! Peers that only use up resources.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use toolwarden_gateway::listener::raise_descriptor_limit;
use toolwarden_mcp::Era;

use crate::guarding::{agent_of, bearer_of, identity};
use crate::support::{SOON, TestGateway, at, shop_of};

async fn gateway(listen: serde_json::Value) -> (TestGateway, SocketAddr) {
    let server = shop_of(Era::Handshake);
    let gateway = TestGateway::start(&json!({
        "servers": {"s": at(&server)}, "identity": identity(&["ada"]), "listen": listen,
    }))
    .await;
    let address = gateway
        .root()
        .trim_start_matches("http://")
        .parse()
        .unwrap();
    // The server ends with the process.
    std::mem::forget(server);
    (gateway, address)
}

/// Sends a text and returns what arrives until the other side closes or is silent for a while.
async fn exchange(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let wait = if answer.is_empty() {
            SOON
        } else {
            Duration::from_millis(500)
        };
        match timeout(wait, stream.read(&mut buffer)).await {
            Ok(Ok(read)) if read > 0 => answer.extend_from_slice(&buffer[..read]),
            _ => return String::from_utf8_lossy(&answer).into_owned(),
        }
    }
}

/// The head of a message to the gateway.
fn head(more: &str, caller: Option<&str>) -> String {
    let authorization = caller.map(|caller| format!("authorization: {}\r\n", bearer_of(caller)));
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{}{more}\r\n",
        authorization.unwrap_or_default()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_silent_connections_lock_no_agent_out() {
    let descriptors = raise_descriptor_limit();
    let (gateway, address) = gateway(json!({"address": "127.0.0.1:0"})).await;
    let before = agent_of(Era::Handshake, &gateway.url, "ada", &[]).await;
    // Each connection is open twice in this process.
    let many = usize::try_from(descriptors.unwrap_or(1024)).unwrap() / 3;
    let mut silent = Vec::new();
    for number in 0..many.min(2_000) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // Some begin to say something.
        if number % 2 == 0 {
            drop(
                stream
                    .write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: ")
                    .await,
            );
        }
        silent.push(stream);
    }
    let served = async {
        let answer = before.call("s__echo", json!({})).await;
        assert!(answer["result"].is_object(), "{answer}");
        // One that comes now, too.
        let later = agent_of(Era::Handshake, &gateway.url, "ada", &[]).await;
        let answer = later.call("s__echo", json!({})).await;
        assert!(answer["result"].is_object(), "{answer}");
    };
    timeout(SOON, served).await.expect("agents are served");
    drop(silent);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_do_not_wait_for_the_body() {
    let (gateway, address) = gateway(json!({"address": "127.0.0.1:0", "max_body": "1KiB"})).await;
    let port = address.port();
    let head =
        |more: &str, caller| head(more, caller).replace("localhost", &format!("localhost:{port}"));
    for (head, status) in [
        (head("content-length: 100\r\n", None), "401"),
        (head("content-length: 1000000\r\n", Some("ada")), "413"),
        (
            head(
                "content-length: 100\r\norigin: https://evil.example\r\n",
                Some("ada"),
            ),
            "403",
        ),
    ] {
        // Nothing of the body is sent.
        let answer = exchange(address, &head).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_and_slow_bodies_are_told_apart_from_large_ones() {
    let limits = json!({"body_within": "500ms"});
    let listen = json!({"address": "127.0.0.1:0", "max_body": "1KiB", "limits": limits});
    let (gateway, address) = gateway(listen).await;
    let port = address.port();
    let head =
        |more: &str| head(more, Some("ada")).replace("localhost", &format!("localhost:{port}"));
    let chunked = head("transfer-encoding: chunked\r\n");
    let large = "x".repeat(1_500);
    for (sent, status) in [
        (format!("{chunked}zz\r\n{{}}\r\n0\r\n\r\n"), "400"),
        (format!("{chunked}2\r\n{{}}xx\r\n0\r\n\r\n"), "400"),
        (format!("{chunked}5dc\r\n{large}\r\n0\r\n\r\n"), "413"),
        (format!("{chunked}5\r\n{{"), "408"),
        (format!("{}{{", head("content-length: 100\r\n")), "408"),
    ] {
        let answer = exchange(address, &sent).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{sent:.200}: {answer}"
        );
    }
    gateway.stop().await;
}
