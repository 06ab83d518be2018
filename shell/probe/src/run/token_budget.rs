use serde_json::Value;
use thiserror::Error;
use tokio::sync::watch;
use toolwarden_model::reply::TokenUsage;

/// Bytes per token, used if a provider reports no usage. A rough estimate, on the safe side for
/// English and code.
const BYTES_PER_TOKEN: u64 = 3;

/// The estimated tokens of a reply before it arrives.
const REPLY_TOKENS: u64 = 256;

/// The token budget of one provider. Requests in flight reserve tokens until their cost is known.
#[derive(Debug)]
pub(crate) struct TokenBudget {
    most: Option<u64>,
    usage: watch::Sender<BudgetUsage>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BudgetUsage {
    spent: u64,
    reserved: u64,
}

/// Tokens reserved for one request. They are released when it is over.
#[derive(Debug)]
#[must_use]
pub(crate) struct TokenReservation<'b> {
    budget: &'b TokenBudget,
    tokens: u64,
}

/// The remaining budget is too small for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{spent} of the {most} tokens for this provider are used, and another request may take {wanted}"
)]
pub(crate) struct BudgetExhausted {
    spent: u64,
    most: u64,
    wanted: u64,
}

impl TokenBudget {
    pub(crate) fn new(most: Option<u64>) -> Self {
        Self {
            most,
            usage: watch::Sender::new(BudgetUsage::default()),
        }
    }

    /// Reserves tokens for a request. If needed, waits until other requests have released tokens
    /// they did not use.
    pub(crate) async fn reserve(
        &self,
        body: &Value,
    ) -> Result<TokenReservation<'_>, BudgetExhausted> {
        let wanted = tokens_of(body.to_string().len()).saturating_add(REPLY_TOKENS);
        let most = self.most.unwrap_or(u64::MAX);
        let mut changes = self.usage.subscribe();
        loop {
            let BudgetUsage { spent, .. } = *changes.borrow_and_update();
            if self.most.is_some() && spent.saturating_add(wanted) > most {
                return Err(BudgetExhausted {
                    spent,
                    most,
                    wanted,
                });
            }
            let fits = self.usage.send_if_modified(|taken| {
                let set_aside = taken.reserved.saturating_add(wanted);
                let fits = self.most.is_none() || taken.spent.saturating_add(set_aside) <= most;
                if fits {
                    taken.reserved = set_aside;
                }
                fits
            });
            if fits {
                return Ok(TokenReservation {
                    budget: self,
                    tokens: wanted,
                });
            }
            // This value owns the sender, so it still exists.
            let _changed = changes.changed().await;
        }
    }
}

impl TokenReservation<'_> {
    /// Settles the actual cost of the request. A refused request costs nothing.
    pub(crate) fn spend(self, took: u64) {
        self.budget.usage.send_modify(|taken| {
            taken.spent = taken.spent.saturating_add(took);
        });
    }
}

impl Drop for TokenReservation<'_> {
    fn drop(&mut self) {
        self.budget.usage.send_modify(|taken| {
            taken.reserved = taken.reserved.saturating_sub(self.tokens);
        });
    }
}

/// The cost of a delivered reply: as reported by the provider, else estimated from its size.
pub(crate) fn token_cost(usage: &TokenUsage, sent: &Value, received: usize) -> u64 {
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
    async fn tokens_are_reserved_until_the_cost_is_known() {
        let budget = TokenBudget::new(Some(1_000));
        let body = json!("x".repeat(600));
        let first = budget.reserve(&body).await.unwrap();
        let second = budget.reserve(&body).await.unwrap();
        let mut third = pin!(budget.reserve(&body));
        assert!(
            timeout(Duration::ZERO, third.as_mut()).await.is_err(),
            "it waits"
        );
        first.spend(50);
        let third = third.await.unwrap();
        second.spend(50);
        // A dropped reservation costs nothing.
        drop(third);
        let fourth = budget.reserve(&body).await.unwrap();
        let fifth = pin!(budget.reserve(&body));
        fourth.spend(700);
        let exhausted = fifth.await.unwrap_err();
        assert_eq!(
            exhausted.to_string(),
            "800 of the 1000 tokens for this provider are used, and another request may take 456"
        );
        let taken = BudgetUsage {
            spent: 800,
            reserved: 0,
        };
        assert_eq!(*budget.usage.borrow(), taken);
        assert!(TokenBudget::new(None).reserve(&body).await.is_ok());
    }

    #[test]
    fn missing_usage_is_estimated_by_size() {
        let told = TokenUsage {
            input: Some(7),
            output: Some(8),
            ..TokenUsage::default()
        };
        assert_eq!(token_cost(&told, &json!("abc"), 900), 15);
        assert_eq!(
            token_cost(&TokenUsage::default(), &json!("x".repeat(298)), 900),
            400
        );
    }
}
