//! Bodies that are written while they are read.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use http_body::{Body, Frame};
use tokio::sync::mpsc;

/// The most pieces that wait to be read. One may be as large as a message of a server.
const WAITING: usize = 4;

/// A body whose pieces come from elsewhere; it ends when nobody can send any more.
#[derive(Debug)]
pub(super) struct Pieces(mpsc::Receiver<Bytes>);

impl Pieces {
    /// A body and where its pieces are put.
    pub(super) fn channel() -> (mpsc::Sender<Bytes>, Self) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (sender, Self(receiver))
    }
}

impl Body for Pieces {
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
