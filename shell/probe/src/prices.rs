//! What tokens cost, by provider and model.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;
use toolwarden_files::{FileError, parse_document};
use toolwarden_trials::{TokenSum, TokenTotals};

use crate::probe_file;

/// The table that is used unless another is given.
const BUNDLED: &str = include_str!("../data/prices.yaml");
/// The number of tokens that a price is for.
const UNIT: f64 = 1e6;

/// List prices of tokens, as of a day.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    /// The day on which the prices were read.
    pub as_of: String,
    /// Where they were read.
    pub source: String,
    /// The currency, such as `USD`.
    pub currency: String,
    /// The prices; the first that matches is used.
    pub prices: Vec<ModelPrice>,
}

/// What one million tokens of a model cost.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// The provider; `None` stands for every provider.
    #[serde(default)]
    pub provider: Option<String>,
    /// The model; a `*` at its end stands for any text.
    pub model: String,
    /// The price of tokens of requests.
    pub input: f64,
    /// The price of tokens of replies.
    pub output: f64,
    /// The price of tokens of requests that came from a cache, if it is another one.
    #[serde(default)]
    pub cached_input: Option<f64>,
}

/// Why a price table cannot be used.
#[derive(Debug, Error)]
pub enum InvalidPrices {
    /// The file cannot be read or parsed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file has another structure.
    #[error("{}: {message}", path.display())]
    Structure {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
}

impl PriceTable {
    /// Reads a table from a file.
    ///
    /// # Errors
    /// The file cannot be read, has unknown keys, or a price is negative.
    pub fn load(path: &Path) -> Result<Self, InvalidPrices> {
        Self::parse(&probe_file::read(path)?, path)
    }

    /// The table bundled with the program.
    ///
    /// # Errors
    /// Never in practice, because a test reads it.
    pub fn bundled() -> Result<Self, InvalidPrices> {
        Self::parse(BUNDLED, Path::new("prices.yaml"))
    }

    fn parse(text: &str, path: &Path) -> Result<Self, InvalidPrices> {
        let wrong = |message: String| InvalidPrices::Structure {
            path: path.to_owned(),
            message,
        };
        let document = parse_document(text, path)?;
        let table: Self =
            serde_json::from_value(document.value).map_err(|error| wrong(error.to_string()))?;
        let is_price = |it: f64| it.is_finite() && it >= 0.0;
        let invalid = table.prices.iter().find(|it| {
            let all = [it.input, it.output, it.cached_input.unwrap_or_default()];
            !all.into_iter().all(is_price)
        });
        match invalid {
            Some(price) => Err(wrong(format!("the price of `{}` is negative", price.model))),
            None => Ok(table),
        }
    }

    /// The price of a model.
    #[must_use]
    pub fn find(&self, provider: &str, model: &str) -> Option<&ModelPrice> {
        self.prices.iter().find(|it| {
            let same = it.provider.as_deref().is_none_or(|name| name == provider);
            same && match it.model.strip_suffix('*') {
                Some(start) => model.starts_with(start),
                None => it.model == model,
            }
        })
    }
}

impl ModelPrice {
    /// What one reply costs on average; `None` if the provider did not report its tokens.
    #[must_use]
    pub fn per_reply(&self, tokens: &TokenTotals) -> Option<f64> {
        let (input, output) = (average(tokens.input)?, average(tokens.output)?);
        let cached = average(tokens.cached).unwrap_or_default().min(input);
        let cached_price = self.cached_input.unwrap_or(self.input);
        let cost = (input - cached) * self.input + cached * cached_price + output * self.output;
        Some(cost / UNIT)
    }
}

fn average(tokens: TokenSum) -> Option<f64> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of tokens are far below 2^53, and the result is an estimate"
    )]
    (tokens.replies > 0).then(|| tokens.sum as f64 / tokens.replies as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(replies: u64, sum: u64) -> TokenSum {
        TokenSum { replies, sum }
    }

    #[test]
    fn the_bundled_table_prices_the_usual_models() {
        let table = PriceTable::bundled().unwrap();
        assert_eq!(table.as_of, "2026-11-18");
        let price = table.find("deepseek", "deepseek-chat").unwrap();
        let tokens = TokenTotals {
            input: sum(2, 2_000),
            output: sum(2, 200),
            cached: sum(1, 500),
            ..TokenTotals::default()
        };
        // 500 tokens at 0.28, 500 at 0.028, 100 at 0.42.
        let cost = price.per_reply(&tokens).unwrap() * 1e6;
        assert!((cost - 196.0).abs() < 1e-6, "{cost}");
        assert_eq!(price.per_reply(&TokenTotals::default()), None);
        let starred = table.find("anthropic", "claude-haiku-4-5-20251001");
        assert_eq!(starred.unwrap().output, 5.0);
        assert_eq!(table.find("elsewhere", "deepseek-chat"), None);
    }

    #[test]
    fn mistakes_in_a_table_are_named() {
        let read = |text: &str| {
            let read = PriceTable::parse(text, Path::new("p.yaml"));
            read.map(|_| ()).map_err(|error| error.to_string())
        };
        let head = "as_of: 2026-01-01\nsource: me\ncurrency: USD\n";
        assert_eq!(
            read(&format!(
                "{head}prices: [{{model: m, input: 1, output: 2}}]"
            )),
            Ok(())
        );
        assert_eq!(
            read(&format!(
                "{head}prices: [{{model: m, input: -1, output: 2}}]"
            )),
            Err("p.yaml: the price of `m` is negative".to_owned())
        );
        let unknown = read(&format!(
            "{head}prices: [{{model: m, input: 1, output: 2, in: 3}}]"
        ));
        assert!(
            unknown
                .unwrap_err()
                .starts_with("p.yaml: unknown field `in`")
        );
    }
}
