//! Open requests of a connection on which responses arrive in any order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::{Notify, oneshot};

use crate::close_signal::CloseSignal;
use crate::rpc_message::RpcError;

/// The result or the error of one request.
pub(crate) type RpcOutcome = Result<Box<RawValue>, RpcError>;

/// Why no further responses arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The server closed its side.
    ByServer,
    /// A message exceeded the limit.
    TooLarge,
    /// Too much output was not JSON-RPC.
    TooNoisy,
    /// The server sent too many notifications and requests.
    TooManyMessages,
    /// This side closed the connection.
    ByClient,
}

/// Matches responses to the requests that wait for them.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    inner: Mutex<Inner>,
    close_signal: CloseSignal,
}

#[derive(Debug, Default)]
struct Inner {
    pending: BTreeMap<i64, ResponseSender>,
    newest: i64,
    unmatched_id: Option<String>,
    close_reason: Option<CloseReason>,
}

/// The sending half of a waiting request.
#[derive(Debug)]
struct ResponseSender {
    sender: oneshot::Sender<RpcOutcome>,
    activity: Arc<Notify>,
}

impl PendingRequests {
    /// Opens a request. Dropping the returned value stops the wait. `signs` is notified of signs of
    /// life.
    pub(crate) fn open(&self, id: i64, signs: Arc<Notify>) -> PendingRequest<'_> {
        let (sender, answer) = oneshot::channel();
        let mut inner = self.lock();
        // After the connection ended the sender is dropped here, so the wait fails at once.
        if inner.close_reason.is_none() {
            inner.newest = inner.newest.max(id);
            inner.unmatched_id = None;
            let waiting = ResponseSender {
                sender,
                activity: signs,
            };
            inner.pending.insert(id, waiting);
        }
        PendingRequest {
            requests: self,
            id,
            receiver: answer,
        }
    }

    /// Delivers a response to the request with its id.
    pub(crate) fn complete(&self, id: &RawValue, outcome: RpcOutcome) {
        let mut inner = self.lock();
        let number = id.get().parse::<i64>().ok();
        let waiting = match (number, id.get(), inner.pending.len()) {
            (Some(number), _, _) => inner.pending.remove(&number),
            // An error with the id `null` means that the server could not read a request: the only
            // open one.
            (None, "null", 1) if outcome.is_err() => {
                inner.pending.pop_first().map(|(_id, waiting)| waiting)
            }
            (None, _, _) => None,
        };
        match waiting {
            Some(waiting) => {
                // The receiver is gone if the caller gave up; then the response is dropped.
                let _unwanted = waiting.sender.send(outcome);
            }
            // Late responses to cancelled requests are normal; ids that were never sent are not.
            None if number.is_none_or(|number| number > inner.newest || number < 1) => {
                inner.unmatched_id = Some(id.get().to_owned());
            }
            None => {}
        }
    }

    /// Fails all open and later requests; the first reason wins.
    pub(crate) fn fail_all(&self, reason: CloseReason) {
        let mut inner = self.lock();
        inner.close_reason.get_or_insert(reason);
        inner.pending.clear();
        drop(inner);
        self.close_signal.set();
    }

    /// Notifies the request with this id that the server is working on it.
    pub(crate) fn report_activity(&self, id: i64) {
        if let Some(waiting) = self.lock().pending.get(&id) {
            waiting.activity.notify_one();
        }
    }

    /// A handle to wait for the end of the connection.
    pub(crate) fn close_signal(&self) -> &CloseSignal {
        &self.close_signal
    }

    /// Why the connection ended, if it did.
    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.lock().close_reason
    }

    /// The id of a response that matched no request since the last request was opened.
    pub(crate) fn unmatched_id(&self) -> Option<String> {
        self.lock().unmatched_id.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that waits for its response.
#[derive(Debug)]
pub(crate) struct PendingRequest<'a> {
    requests: &'a PendingRequests,
    id: i64,
    receiver: oneshot::Receiver<RpcOutcome>,
}

impl PendingRequest<'_> {
    /// The response; `None` when the connection has ended.
    pub(crate) async fn response(mut self) -> Option<RpcOutcome> {
        (&mut self.receiver).await.ok()
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.requests.lock().pending.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl PendingRequests {
        fn open_for_test(&self, id: i64) -> PendingRequest<'_> {
            self.open(id, Arc::default())
        }
    }

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn rpc_error() -> RpcError {
        RpcError {
            code: -32700,
            message: "parse error".to_owned(),
            data: None,
        }
    }

    #[tokio::test]
    async fn answers_find_their_requests_in_any_order() {
        let requests = PendingRequests::default();
        let (one, two) = (requests.open_for_test(1), requests.open_for_test(2));
        requests.complete(&raw("2"), Ok(raw("\"b\"")));
        requests.complete(&raw("1"), Ok(raw("\"a\"")));
        assert_eq!(one.response().await.unwrap().unwrap().get(), "\"a\"");
        assert_eq!(two.response().await.unwrap().unwrap().get(), "\"b\"");
        assert_eq!(requests.unmatched_id(), None);
    }

    #[tokio::test]
    async fn an_error_without_id_belongs_to_the_only_request() {
        let requests = PendingRequests::default();
        let one = requests.open_for_test(1);
        requests.complete(&raw("null"), Err(rpc_error()));
        assert_eq!(one.response().await.unwrap().unwrap_err().code, -32700);
    }

    #[tokio::test]
    async fn late_responses_are_matched_but_foreign_ones_are_not() {
        let requests = PendingRequests::default();
        drop(requests.open_for_test(1));
        requests.complete(&raw("1"), Ok(raw("1")));
        assert_eq!(requests.unmatched_id(), None);
        requests.complete(&raw("\"1\""), Ok(raw("1")));
        assert_eq!(requests.unmatched_id().as_deref(), Some("\"1\""));
    }

    #[tokio::test]
    async fn the_end_fails_open_and_later_requests() {
        let requests = PendingRequests::default();
        let one = requests.open_for_test(1);
        requests.fail_all(CloseReason::TooLarge);
        requests.fail_all(CloseReason::ByServer);
        assert!(one.response().await.is_none());
        assert!(requests.open_for_test(2).response().await.is_none());
        assert_eq!(requests.close_reason(), Some(CloseReason::TooLarge));
    }

    #[tokio::test]
    async fn activity_and_close_are_signalled() {
        let requests = PendingRequests::default();
        let signs = Arc::<Notify>::default();
        let _open = requests.open(1, Arc::clone(&signs));
        requests.report_activity(2);
        requests.report_activity(1);
        signs.notified().await;
        assert!(!requests.close_signal().is_set());
        requests.fail_all(CloseReason::ByClient);
        requests.close_signal().wait().await;
    }
}
