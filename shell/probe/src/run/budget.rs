use serde_json::Value;
use thiserror::Error;
use tokio::sync::watch;
use toolwarden_model::reply::Usage;

/// How many bytes make a token where a provider does not say. A rough guess, on the safe side for
/// English and code.
const BYTES_PER_TOKEN: u64 = 3;

/// What a reply is expected to take before it is there.
const REPLY_TOKENS: u64 = 256;

/// The tokens one provider may take. What is being asked is set aside until its price is known.
#[derive(Debug)]
pub(crate) struct Budget {
    most: Option<u64>,
    taken: watch::Sender<Taken>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taken {
    spent: u64,
    set_aside: u64,
}

/// Tokens set aside for one request. They are free again when it is over.
#[derive(Debug)]
#[must_use]
pub(crate) struct Reserved<'b> {
    budget: &'b Budget,
    tokens: u64,
}

/// What is left will not do for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{spent} of the {most} tokens for this provider are used, and another request may take {wanted}"
)]
pub(crate) struct Exhausted {
    spent: u64,
    most: u64,
    wanted: u64,
}

impl Budget {
    pub(crate) fn new(most: Option<u64>) -> Self {
        Self {
            most,
            taken: watch::Sender::new(Taken::default()),
        }
    }

    /// Sets tokens aside for a request, if need be after other requests have turned out to take less
    /// than was set aside for them.
    pub(crate) async fn reserve(&self, body: &Value) -> Result<Reserved<'_>, Exhausted> {
        let wanted = tokens_of(body.to_string().len()).saturating_add(REPLY_TOKENS);
        let most = self.most.unwrap_or(u64::MAX);
        let mut changes = self.taken.subscribe();
        loop {
            let Taken { spent, .. } = *changes.borrow_and_update();
            if self.most.is_some() && spent.saturating_add(wanted) > most {
                return Err(Exhausted {
                    spent,
                    most,
                    wanted,
                });
            }
            let fits = self.taken.send_if_modified(|taken| {
                let set_aside = taken.set_aside.saturating_add(wanted);
                let fits = self.most.is_none() || taken.spent.saturating_add(set_aside) <= most;
                if fits {
                    taken.set_aside = set_aside;
                }
                fits
            });
            if fits {
                return Ok(Reserved {
                    budget: self,
                    tokens: wanted,
                });
            }
            // The sender is ours: it is not gone.
            let _changed = changes.changed().await;
        }
    }
}

impl Reserved<'_> {
    /// Takes what the request really took. One that was refused took nothing.
    pub(crate) fn settle(self, took: u64) {
        self.budget.taken.send_modify(|taken| {
            taken.spent = taken.spent.saturating_add(took);
        });
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.budget.taken.send_modify(|taken| {
            taken.set_aside = taken.set_aside.saturating_sub(self.tokens);
        });
    }
}

/// What a delivered reply took: by the provider's word, else by its size.
pub(crate) fn price(usage: &Usage, sent: &Value, received: usize) -> u64 {
    let input = usage
        .input
        .unwrap_or_else(|| tokens_of(sent.to_string().len()));
    let output = usage.output.unwrap_or_else(|| tokens_of(received));
    input.saturating_add(output)
}

fn tokens_of(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX) / BYTES_PER_TOKEN
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use serde_json::json;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn what_is_asked_is_set_aside_until_its_price_is_known() {
        let budget = Budget::new(Some(1_000));
        let body = json!("x".repeat(600));
        let first = budget.reserve(&body).await.unwrap();
        let second = budget.reserve(&body).await.unwrap();
        let mut third = pin!(budget.reserve(&body));
        assert!(
            timeout(Duration::ZERO, third.as_mut()).await.is_err(),
            "it waits"
        );
        first.settle(50);
        let third = third.await.unwrap();
        second.settle(50);
        // One that was given up takes nothing.
        drop(third);
        let fourth = budget.reserve(&body).await.unwrap();
        let fifth = pin!(budget.reserve(&body));
        fourth.settle(700);
        let exhausted = fifth.await.unwrap_err();
        assert_eq!(
            exhausted.to_string(),
            "800 of the 1000 tokens for this provider are used, and another request may take 456"
        );
        let taken = Taken {
            spent: 800,
            set_aside: 0,
        };
        assert_eq!(*budget.taken.borrow(), taken);
        assert!(Budget::new(None).reserve(&body).await.is_ok());
    }

    #[test]
    fn a_provider_that_is_silent_about_tokens_is_judged_by_size() {
        let told = Usage {
            input: Some(7),
            output: Some(8),
            ..Usage::default()
        };
        assert_eq!(price(&told, &json!("abc"), 900), 15);
        assert_eq!(price(&Usage::default(), &json!("x".repeat(298)), 900), 400);
    }
}
