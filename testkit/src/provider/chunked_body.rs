use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use http_body::{Body, Frame};
use tokio::sync::mpsc::Receiver;

/// A body that is sent piece by piece; an error breaks the connection.
#[derive(Debug)]
pub(super) struct ChunkedBody(pub(super) Receiver<Result<Vec<u8>, ()>>);

impl Body for ChunkedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(context).map(|piece| {
            piece.map(|piece| match piece {
                Ok(bytes) => Ok(Frame::data(Bytes::from(bytes))),
                Err(()) => Err(io::Error::from(io::ErrorKind::ConnectionAborted)),
            })
        })
    }
}
