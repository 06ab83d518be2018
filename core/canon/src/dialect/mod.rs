//! What a target accepts inside a schema: dated tables of facts, the rules that apply them, and the
//! rewrites that make a schema conform.

mod conform;
mod facts;
mod lint;
mod provider_facts;
mod request_limits;
mod rules;
mod table;
mod violation;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use toolwarden_model::did_you_mean;

pub use conform::{RewriteMode, conform, conform_to_facts};
pub use facts::DialectFacts;
pub use lint::{DialectFinding, DialectLevel, lint, lint_with_facts};
pub use request_limits::RequestLimits;
pub use table::{DialectTable, InvalidTable};

/// The subset of JSON Schema, and the rules for names and sizes, that a target enforces on requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// OpenAI with `strict: true`.
    OpenaiStrict,
    /// Anthropic with `strict: true`.
    AnthropicStrict,
    /// Gemini `parameters`.
    Gemini,
    /// Gemini `parametersJsonSchema`.
    GeminiJsonSchema,
    /// Kimi's Moonshot-flavoured JSON Schema.
    Kimi,
    /// DeepSeek's beta endpoint with `strict: true`.
    DeepseekStrict,
    /// Amazon Bedrock.
    Bedrock,
    /// Cohere.
    Cohere,
}

/// An unknown dialect name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown dialect `{word}`{} (known: {})", did_you_mean(word, Dialect::ids()), Dialect::ids().collect::<Vec<_>>().join(", "))]
pub struct UnknownDialect {
    word: String,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: &'static [Self] = &[
        Self::OpenaiStrict,
        Self::AnthropicStrict,
        Self::Gemini,
        Self::GeminiJsonSchema,
        Self::Kimi,
        Self::DeepseekStrict,
        Self::Bedrock,
        Self::Cohere,
    ];

    fn ids() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|dialect| dialect.id())
    }

    /// The dialect's name in commands.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::OpenaiStrict => "openai-strict",
            Self::AnthropicStrict => "anthropic-strict",
            Self::Gemini => "gemini",
            Self::GeminiJsonSchema => "gemini-json-schema",
            Self::Kimi => "kimi",
            Self::DeepseekStrict => "deepseek-strict",
            Self::Bedrock => "bedrock",
            Self::Cohere => "cohere",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(word: &str) -> Result<Self, UnknownDialect> {
        let known = Self::ALL
            .iter()
            .copied()
            .find(|dialect| dialect.id() == word);
        known.ok_or_else(|| UnknownDialect {
            word: word.to_owned(),
        })
    }
}
