//! A stream of server-sent events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use http_body::Frame;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

/// Messages as they arrive; their producer ends with the stream.
#[derive(Debug)]
pub(super) struct DemoEventStream {
    messages: Receiver<String>,
    task: JoinHandle<()>,
}

impl DemoEventStream {
    pub(super) fn new(messages: Receiver<String>, task: JoinHandle<()>) -> Self {
        Self { messages, task }
    }

    pub(super) fn into_response(self) -> Response {
        let mut response = Response::new(Body::new(self));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}

impl http_body::Body for DemoEventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.messages.poll_recv(context).map(|message| {
            let message = message?;
            let event = format!("event: message\ndata: {message}\n\n");
            Some(Ok(Frame::data(Bytes::from(event))))
        })
    }
}

impl Drop for DemoEventStream {
    fn drop(&mut self) {
        self.task.abort();
    }
}
