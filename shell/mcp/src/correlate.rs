//! Open requests of a connection on which answers arrive in any order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::{Notify, oneshot};

use crate::ending::Ending;
use crate::message::RpcError;

/// The result or the error of one request.
pub(crate) type Outcome = Result<Box<RawValue>, RpcError>;

/// Why no further answers come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The server closed its side.
    ByServer,
    /// A message exceeded the limit.
    TooLarge,
    /// Too much output was not JSON-RPC.
    TooNoisy,
    /// Too many notifications and requests came.
    Flooded,
    /// This side closed the connection.
    Closed,
}

/// Pairs answers with the requests that wait for them.
#[derive(Debug, Default)]
pub(crate) struct Correlator {
    inner: Mutex<Inner>,
    ending: Ending,
}

#[derive(Debug, Default)]
struct Inner {
    open: BTreeMap<i64, Waiting>,
    newest: i64,
    stray: Option<String>,
    ended: Option<Ended>,
}

/// The other end of a request that waits.
#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Outcome>,
    signs: Arc<Notify>,
}

impl Correlator {
    /// Opens a request. Dropping what is returned stops the wait. `signs` is told of signs of life.
    pub(crate) fn open(&self, id: i64, signs: Arc<Notify>) -> OpenRequest<'_> {
        let (sender, answer) = oneshot::channel();
        let mut inner = self.lock();
        // After the end the sender is dropped here, so that the wait fails at once.
        if inner.ended.is_none() {
            inner.newest = inner.newest.max(id);
            inner.stray = None;
            let waiting = Waiting {
                answer: sender,
                signs,
            };
            inner.open.insert(id, waiting);
        }
        OpenRequest {
            requests: self,
            id,
            answer,
        }
    }

    /// Hands an answer to the request with its id.
    pub(crate) fn settle(&self, id: &RawValue, outcome: Outcome) {
        let mut inner = self.lock();
        let number = id.get().parse::<i64>().ok();
        let waiting = match (number, id.get(), inner.open.len()) {
            (Some(number), _, _) => inner.open.remove(&number),
            // An error with the id `null` means that a request could not be read: the only one
            // there is.
            (None, "null", 1) if outcome.is_err() => {
                inner.open.pop_first().map(|(_id, waiting)| waiting)
            }
            (None, _, _) => None,
        };
        match waiting {
            Some(waiting) => {
                // The receiver is gone if the caller gave up; then nobody wants the answer.
                let _unwanted = waiting.answer.send(outcome);
            }
            // Late answers to requests given up are normal; ids never sent are not.
            None if number.is_none_or(|number| number > inner.newest || number < 1) => {
                inner.stray = Some(id.get().to_owned());
            }
            None => {}
        }
    }

    /// Fails all open requests and all later ones; the first reason counts.
    pub(crate) fn end(&self, reason: Ended) {
        let mut inner = self.lock();
        inner.ended.get_or_insert(reason);
        inner.open.clear();
        drop(inner);
        self.ending.tell();
    }

    /// Tells the request with this id that the server works on it.
    pub(crate) fn sign_of_life(&self, id: i64) {
        if let Some(waiting) = self.lock().open.get(&id) {
            waiting.signs.notify_one();
        }
    }

    /// The end, to wait for it.
    pub(crate) fn ending(&self) -> &Ending {
        &self.ending
    }

    /// Why the connection ended, if it did.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.lock().ended
    }

    /// The id of an answer that no request asked for since the last one was opened.
    pub(crate) fn stray(&self) -> Option<String> {
        self.lock().stray.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(crate) struct OpenRequest<'a> {
    requests: &'a Correlator,
    id: i64,
    answer: oneshot::Receiver<Outcome>,
}

impl OpenRequest<'_> {
    /// The answer; `None` when the connection has ended.
    pub(crate) async fn answer(mut self) -> Option<Outcome> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.requests.lock().open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Correlator {
        fn open_plain(&self, id: i64) -> OpenRequest<'_> {
            self.open(id, Arc::default())
        }
    }

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn refusal() -> RpcError {
        RpcError {
            code: -32700,
            message: "parse error".to_owned(),
            data: None,
        }
    }

    #[tokio::test]
    async fn answers_find_their_requests_in_any_order() {
        let requests = Correlator::default();
        let (one, two) = (requests.open_plain(1), requests.open_plain(2));
        requests.settle(&raw("2"), Ok(raw("\"b\"")));
        requests.settle(&raw("1"), Ok(raw("\"a\"")));
        assert_eq!(one.answer().await.unwrap().unwrap().get(), "\"a\"");
        assert_eq!(two.answer().await.unwrap().unwrap().get(), "\"b\"");
        assert_eq!(requests.stray(), None);
    }

    #[tokio::test]
    async fn an_error_without_id_belongs_to_the_only_request() {
        let requests = Correlator::default();
        let one = requests.open_plain(1);
        requests.settle(&raw("null"), Err(refusal()));
        assert_eq!(one.answer().await.unwrap().unwrap_err().code, -32700);
    }

    #[tokio::test]
    async fn late_answers_are_not_stray_but_foreign_ones_are() {
        let requests = Correlator::default();
        drop(requests.open_plain(1));
        requests.settle(&raw("1"), Ok(raw("1")));
        assert_eq!(requests.stray(), None);
        requests.settle(&raw("\"1\""), Ok(raw("1")));
        assert_eq!(requests.stray().as_deref(), Some("\"1\""));
    }

    #[tokio::test]
    async fn the_end_fails_open_and_later_requests() {
        let requests = Correlator::default();
        let one = requests.open_plain(1);
        requests.end(Ended::TooLarge);
        requests.end(Ended::ByServer);
        assert!(one.answer().await.is_none());
        assert!(requests.open_plain(2).answer().await.is_none());
        assert_eq!(requests.ended(), Some(Ended::TooLarge));
    }

    #[tokio::test]
    async fn signs_of_life_and_the_end_are_told() {
        let requests = Correlator::default();
        let signs = Arc::<Notify>::default();
        let _open = requests.open(1, Arc::clone(&signs));
        requests.sign_of_life(2);
        requests.sign_of_life(1);
        signs.notified().await;
        assert!(!requests.ending().is_told());
        requests.end(Ended::Closed);
        requests.ending().wait().await;
    }
}
