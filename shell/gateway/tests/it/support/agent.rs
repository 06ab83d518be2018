//! An agent of either era.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::{Exchange, SOON};

/// The capabilities of an agent that accepts every request a server may send.
pub(crate) const EVERYTHING: &str =
    r#"{"sampling":{},"elicitation":{"form":{}},"roots":{"listChanged":true}}"#;

const STATELESS: &str = "2026-07-28";
const NEWEST: &str = "2025-11-25";

/// An agent that speaks to a gateway over streamable HTTP.
pub(crate) struct Agent {
    pub(crate) era: Era,
    /// What the gateway said to `initialize`.
    pub(crate) connect_request: Value,
    pub(crate) session: Option<String>,
    http: reqwest::Client,
    url: String,
    version: String,
    capabilities: Value,
    headers: Vec<(String, String)>,
    next: AtomicU64,
    /// Members that every stateless request has in its `_meta`.
    pub(crate) meta: Value,
}

impl Agent {
    /// Initializes a session with these capabilities.
    pub(crate) async fn open(url: &str, capabilities: &Value) -> Self {
        Self::open_with(url, capabilities, &[]).await
    }

    pub(crate) async fn open_with(
        url: &str,
        capabilities: &Value,
        headers: &[(&str, &str)],
    ) -> Self {
        Self::open_at(url, NEWEST, capabilities, headers).await
    }

    /// As [`Self::open_with`], in another version of the handshake era.
    pub(crate) async fn open_at(
        url: &str,
        version: &str,
        capabilities: &Value,
        headers: &[(&str, &str)],
    ) -> Self {
        let mut agent = Self::silent(Era::Handshake, url, capabilities, headers);
        agent.version = version.to_owned();
        let params = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = agent.post(&body).await;
        assert_eq!(response.status(), 200);
        let session = response.headers().get("mcp-session-id").cloned();
        let text = response.text().await.unwrap();
        let connect_request: Value = serde_json::from_str(&text).unwrap();
        let session = session.unwrap_or_else(|| panic!("{connect_request}"));
        agent.session = Some(session.to_str().unwrap().to_owned());
        agent.connect_request = connect_request["result"].clone();
        agent.notify("notifications/initialized", json!({})).await;
        agent
    }

    /// An agent of the stateless era.
    pub(crate) fn stateless(url: &str, capabilities: &Value) -> Self {
        Self::silent(Era::Stateless, url, capabilities, &[])
    }

    /// As [`Self::stateless`], with further headers.
    pub(crate) fn stateless_with(
        url: &str,
        capabilities: &Value,
        headers: &[(&str, &str)],
    ) -> Self {
        Self::silent(Era::Stateless, url, capabilities, headers)
    }

    /// An agent of an era with these capabilities.
    pub(crate) async fn of(era: Era, url: &str, capabilities: &str) -> Self {
        let capabilities = serde_json::from_str(capabilities).unwrap();
        match era {
            Era::Handshake => Self::open(url, &capabilities).await,
            Era::Stateless => Self::stateless(url, &capabilities),
        }
    }

    /// An agent that has said nothing yet.
    pub(crate) fn silent(
        era: Era,
        url: &str,
        capabilities: &Value,
        headers: &[(&str, &str)],
    ) -> Self {
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self {
            era,
            connect_request: Value::Null,
            session: None,
            http: super::http(url),
            url: url.to_owned(),
            version: match era {
                Era::Handshake => NEWEST.to_owned(),
                Era::Stateless => STATELESS.to_owned(),
            },
            capabilities: capabilities.clone(),
            headers: headers.collect(),
            next: 1.into(),
            meta: json!({}),
        }
    }

    /// The same agent in the same session, over new connections.
    pub(crate) fn reconnected(&self) -> Self {
        Self {
            era: self.era,
            connect_request: self.connect_request.clone(),
            session: self.session.clone(),
            http: super::http(&self.url),
            url: self.url.clone(),
            version: self.version.clone(),
            capabilities: self.capabilities.clone(),
            headers: self.headers.clone(),
            next: self.next.load(Ordering::Relaxed).into(),
            meta: self.meta.clone(),
        }
    }

    /// Sends any message.
    pub(crate) async fn post(&self, body: &Value) -> reqwest::Response {
        let headers = self.headers_for(body);
        let headers: Vec<_> = headers
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        self.post_text(&body.to_string(), &headers).await
    }

    /// Sends any text with these headers besides the agent's own.
    pub(crate) async fn post_text(
        &self,
        body: &str,
        headers: &[(&str, &str)],
    ) -> reqwest::Response {
        let mut request = self
            .http
            .post(&self.url)
            .timeout(SOON * 3)
            .body(body.to_owned());
        let given = |name: &str| headers.iter().any(|(it, _)| it.eq_ignore_ascii_case(name));
        for (name, value) in self.usual_headers() {
            if !given(&name) {
                request = request.header(name, value);
            }
        }
        for (name, value) in headers {
            // An empty value removes a usual header.
            if !value.is_empty() {
                request = request.header(*name, *value);
            }
        }
        request.send().await.unwrap()
    }

    fn usual_headers(&self) -> Vec<(String, String)> {
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            (
                "accept".to_owned(),
                "application/json, text/event-stream".to_owned(),
            ),
        ];
        if let Some(session) = &self.session {
            headers.push(("mcp-session-id".to_owned(), session.clone()));
            headers.push(("mcp-protocol-version".to_owned(), self.version.clone()));
        }
        headers.extend(self.headers.clone());
        headers
    }

    /// The headers that a stateless request repeats its body in.
    fn headers_for(&self, body: &Value) -> Vec<(String, String)> {
        if self.era == Era::Handshake {
            return Vec::new();
        }
        let method = body["method"].as_str().unwrap_or_default();
        let mut headers = vec![
            ("mcp-protocol-version".to_owned(), STATELESS.to_owned()),
            ("mcp-method".to_owned(), method.to_owned()),
        ];
        let name = match method {
            "tools/call" | "prompts/get" => body["params"]["name"].as_str(),
            "resources/read" => body["params"]["uri"].as_str(),
            _ => None,
        };
        if let Some(name) = name {
            headers.push(("mcp-name".to_owned(), name.to_owned()));
        }
        headers
    }

    /// Parameters with what the era adds to them.
    pub(crate) fn params(&self, mut params: Value) -> Value {
        if self.era == Era::Stateless {
            let mut meta = self.meta.clone();
            meta["io.modelcontextprotocol/protocolVersion"] = json!(STATELESS);
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
            if let Some(more) = params["_meta"].as_object() {
                meta.as_object_mut().unwrap().extend(more.clone());
            }
            params["_meta"] = meta;
        }
        params
    }

    /// Sends a request; its answer is read message by message.
    pub(crate) async fn begin(&self, method: &str, params: Value) -> Exchange {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.begin_as(&json!(id), method, params).await
    }

    /// As [`Self::begin`], under this id.
    pub(crate) async fn begin_as(&self, id: &Value, method: &str, params: Value) -> Exchange {
        let params = self.params(params);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        Exchange::new(self.post(&body).await)
    }

    /// The whole answer to a request: the last message, if it comes as a stream.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        let mut exchange = self.begin(method, params).await;
        let mut all = exchange.rest().await;
        let answer = all.pop();
        let answer = answer.unwrap_or_else(|| panic!("{method}: {} and nothing", exchange.status));
        // Official clients refuse a stateless result that does not say its type.
        let untyped = answer
            .get("result")
            .is_some_and(|it| it["resultType"].is_null());
        assert!(self.era == Era::Handshake || !untyped, "{method}: {answer}");
        answer
    }

    /// The result of a request.
    pub(crate) async fn result(&self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].take()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask("tools/call", params).await
    }

    /// Sends a notification.
    pub(crate) async fn notify(&self, method: &str, params: Value) {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        assert_eq!(self.post(&body).await.status(), 202, "{method}");
    }

    /// Answers a request of a server.
    pub(crate) async fn respond(&self, question: &Value, result: Value) {
        let body = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        assert_eq!(self.post(&body).await.status(), 202);
    }

    /// Opens the stream of messages that belong to no request, or resumes a lost stream.
    pub(crate) async fn listen(&self, last: Option<&str>) -> Exchange {
        let mut request = self
            .http
            .get(&self.url)
            .header("accept", "text/event-stream");
        for (name, value) in self.usual_headers() {
            if name != "accept" && name != "content-type" {
                request = request.header(name, value);
            }
        }
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        Exchange::new(request.send().await.unwrap())
    }

    /// Ends the session.
    pub(crate) async fn end(&self) -> u16 {
        let mut request = self.http.delete(&self.url);
        for (name, value) in self.usual_headers() {
            request = request.header(name, value);
        }
        request.send().await.unwrap().status().as_u16()
    }

    /// The names of the tools it sees.
    pub(crate) async fn tools(&self) -> Vec<String> {
        self.names("tools/list", "tools", "name").await
    }

    /// One member of each entry of a list.
    pub(crate) async fn names(&self, method: &str, list: &str, key: &str) -> Vec<String> {
        let result = self.result(method, json!({})).await;
        let entries = result[list].as_array().unwrap();
        let names = entries.iter().map(|it| it[key].as_str().unwrap());
        names.map(str::to_owned).collect()
    }
}
