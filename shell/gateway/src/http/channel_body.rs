//! Response bodies that are written while they are read.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use http_body::{Body, Frame};
use tokio::sync::mpsc;

/// The most pieces that wait to be read. One may be as large as a message of a server.
const MAX_QUEUED_CHUNKS: usize = 4;

/// A body whose pieces arrive through a channel; it ends when all senders are gone.
#[derive(Debug)]
pub(super) struct ChannelBody(mpsc::Receiver<Bytes>);

impl ChannelBody {
    /// A body and the sender of its pieces.
    pub(super) fn channel() -> (mpsc::Sender<Bytes>, Self) {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_CHUNKS);
        (sender, Self(receiver))
    }
}

impl Body for ChannelBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
