//! A revoked credential ends its sessions and streams.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use toolwarden_mcp::Era;

use super::{bearer, issuer};
use crate::guarding::{Live, agent_of, bearer_of, identity};
use crate::support::{Agent, SOON, at, shop_of};

/// A stream that was opened.
struct Open(BufReader<TcpStream>);

impl Open {
    async fn new(
        url: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Self {
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
        let peer: SocketAddr = address.parse().unwrap();
        let mut stream = TcpStream::connect(peer).await.unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut open = Self(BufReader::new(stream));
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            timeout(SOON, open.0.read_line(&mut head))
                .await
                .unwrap()
                .unwrap();
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("text/event-stream"), "{head}");
        open
    }

    /// Reads to the end of the body.
    async fn ends(mut self) {
        let mut rest = Vec::new();
        let mut buffer = [0; 1024];
        while !rest.ends_with(b"\r\n0\r\n\r\n") && !rest.ends_with(b"0\r\n\r\n") {
            let read = timeout(SOON, self.0.read(&mut buffer)).await;
            match read.expect("the stream ends").unwrap() {
                0 => return,
                read => rest.extend_from_slice(&buffer[..read]),
            }
        }
    }
}

/// Opens every kind of stream that stays open.
async fn streams(url: &str, authorization: &str, session: &str) -> Vec<Open> {
    let accept = ("accept", "application/json, text/event-stream");
    let caller = ("authorization", authorization);
    let standing = [caller, accept, ("mcp-session-id", session)];
    let listen = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": true},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let stateless = [
        caller,
        accept,
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    vec![
        Open::new(url, "GET", "/mcp", &standing, "").await,
        Open::new(url, "GET", "/sse", &[caller, accept], "").await,
        Open::new(url, "POST", "/mcp", &stateless, &listen.to_string()).await,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_and_sessions_end_with_their_credential() {
    let server = shop_of(Era::Handshake);
    let callers = |keys: &[&str], jwt: Value, admins: Value| {
        let mut callers = identity(keys);
        callers["jwt"] = jwt;
        callers["admins"] = admins;
        json!({"servers": {"s": at(&server)}, "identity": callers})
    };
    let all = callers(
        &["ada", "ben", "cyn"],
        json!([issuer(json!({}))]),
        json!(["cyn"]),
    );
    let live = Live::start(&all).await;
    let token = bearer("tom", json!({}));
    let open = async |authorization: &str| {
        let headers = [("authorization", authorization)];
        let agent = Agent::open_with(&live.url, &json!({}), &headers).await;
        let session = agent.session.clone().unwrap();
        let streams = streams(&live.url, authorization, &session).await;
        (agent, streams)
    };
    let (ada, of_ada) = open(&bearer_of("ada")).await;
    let (_, of_ben) = open(&bearer_of("ben")).await;
    let (_, of_cyn) = open(&bearer_of("cyn")).await;
    let (tom, of_tom) = open(&token).await;
    let conversations = || live.running.gateway.conversations().all();
    let held_by = |name: &str| {
        conversations()
            .iter()
            .filter(|it| *it.principal == *name)
            .count()
    };
    assert!(held_by("ben") > 0);
    // One key is removed, another caller is no longer an administrator, and the issuer is no longer trusted.
    let less = callers(&["ada", "cyn"], json!([]), json!([]));
    live.reload(&less).await.unwrap();
    for stream in of_ben.into_iter().chain(of_cyn).chain(of_tom) {
        stream.ends().await;
    }
    let handshake = |name: &str| {
        let all = conversations();
        let mut own = all.iter().filter(|it| *it.principal == *name);
        own.any(|it| it.era() == Era::Handshake)
    };
    assert!(!handshake("ben") && !handshake("tom") && handshake("ada"));
    let refused = tom
        .post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
        .await;
    assert_eq!(refused.status(), 401);
    // Other callers are not affected.
    assert!(!ada.tools().await.is_empty());
    live.running.gateway.end();
    drop(of_ada);
    live.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standing_stream_ends_when_its_token_expires() {
    let server = shop_of(Era::Handshake);
    let callers = json!({"jwt": [issuer(json!({"leeway": "1s"}))]});
    let live = Live::start(&json!({"servers": {"s": at(&server)}, "identity": callers})).await;
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let token = bearer("tom", json!({"exp": now.as_secs() + 3}));
    let agent = Agent::open_with(&live.url, &json!({}), &[("authorization", &token)]).await;
    let session = agent.session.clone().unwrap();
    for stream in streams(&live.url, &token, &session).await {
        stream.ends().await;
    }
    live.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_that_changes_nothing_ends_nothing() {
    let server = shop_of(Era::Handshake);
    let mut settings = json!({"servers": {"s": at(&server)}, "identity": identity(&["ada"])});
    let live = Live::start(&settings).await;
    let ada = agent_of(Era::Handshake, &live.url, "ada", &[]).await;
    settings["identity"] = identity(&["ada", "ben"]);
    live.reload(&settings).await.unwrap();
    assert!(!ada.tools().await.is_empty());
    live.stop().await;
}
