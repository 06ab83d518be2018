//! The limit: an HTTP hop that passes bytes on and knows nothing of what they mean.

use std::sync::Arc;

use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, Request, Response, Uri};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::part::serve_with;

/// The headers that MCP cannot do without.
const PASSED: [HeaderName; 6] = [
    CONTENT_TYPE,
    ACCEPT,
    HeaderName::from_static("mcp-session-id"),
    HeaderName::from_static("mcp-protocol-version"),
    HeaderName::from_static("mcp-method"),
    HeaderName::from_static("mcp-name"),
];

/// Passes everything on to one address until the process ends.
pub(crate) async fn serve(to: Uri) {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<HttpConnector, Incoming> =
        Client::builder(TokioExecutor::new()).build(connector);
    let shared = Arc::new((client, to));
    serve_with(move |request: Request<Incoming>| {
        let shared = Arc::clone(&shared);
        async move {
            let (client, to) = &*shared;
            let (came, body) = request.into_parts();
            let mut passed = Request::new(body);
            *passed.method_mut() = came.method;
            *passed.uri_mut() = to.clone();
            *passed.headers_mut() = needed(&came.headers);
            let (answered, body) = client.request(passed).await?.into_parts();
            let mut response = Response::new(body);
            *response.status_mut() = answered.status;
            *response.headers_mut() = needed(&answered.headers);
            Ok::<_, hyper_util::client::legacy::Error>(response)
        }
    })
    .await;
}

fn needed(came: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in PASSED {
        if let Some(value) = came.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    headers
}
