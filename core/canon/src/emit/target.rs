use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use toolwarden_model::{Draft, Format, did_you_mean};

use crate::dialect::Dialect;
use crate::name_rule::NameRule;

/// A format that a tool can be emitted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EmitTarget {
    /// Chat completions.
    OpenaiChat,
    /// Chat completions with the schema rewritten for strict mode.
    OpenaiStrict,
    /// The Responses API.
    OpenaiResponses,
    /// The legacy `functions` list.
    OpenaiLegacy,
    /// The Messages API.
    Anthropic,
    /// MCP, as it came; from other formats, revision 2025-11-25.
    Mcp,
    /// MCP revision 2025-11-25.
    Mcp20251125,
    /// MCP revision 2026-07-28.
    Mcp20260728,
    /// A LangChain tool with `args_schema`.
    Langchain,
    /// A Gemini declaration with `parameters`.
    Gemini,
    /// A Gemini declaration with `parametersJsonSchema`.
    GeminiJsonSchema,
    /// A Bedrock `toolSpec`.
    Bedrock,
    /// A standalone JSON Schema in the draft it names, else in draft 2019-09.
    JsonSchema,
    /// A standalone JSON Schema, draft 2019-09.
    JsonSchema201909,
    /// A standalone JSON Schema, draft 2020-12.
    JsonSchema202012,
}

/// An unknown target name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown target `{word}`{} (known: {})", did_you_mean(word, EmitTarget::words()), EmitTarget::words().collect::<Vec<_>>().join(", "))]
pub struct UnknownTarget {
    word: String,
}

impl EmitTarget {
    /// Every target, with its aliases.
    pub const ALL: &'static [(Self, &'static [&'static str])] = &[
        (Self::OpenaiChat, &["openai"]),
        (Self::OpenaiStrict, &["openai-chat-strict"]),
        (Self::OpenaiResponses, &[]),
        (Self::OpenaiLegacy, &[]),
        (Self::Anthropic, &[]),
        (Self::Mcp, &[]),
        (Self::Mcp20251125, &[]),
        (Self::Mcp20260728, &[]),
        (Self::Langchain, &[]),
        (Self::Gemini, &[]),
        (Self::GeminiJsonSchema, &[]),
        (Self::Bedrock, &[]),
        (Self::JsonSchema, &[]),
        (Self::JsonSchema201909, &[]),
        (Self::JsonSchema202012, &[]),
    ];

    /// Every name and alias of a target.
    fn words() -> impl Iterator<Item = &'static str> {
        Self::ALL
            .iter()
            .flat_map(|(target, others)| std::iter::once(target.id()).chain(others.iter().copied()))
    }

    /// The target's name in commands.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiStrict => "openai-strict",
            Self::OpenaiResponses => "openai-responses",
            Self::OpenaiLegacy => "openai-legacy",
            Self::Anthropic => "anthropic",
            Self::Mcp => "mcp",
            Self::Mcp20251125 => "mcp-2025-11-25",
            Self::Mcp20260728 => "mcp-2026-07-28",
            Self::Langchain => "langchain",
            Self::Gemini => "gemini",
            Self::GeminiJsonSchema => "gemini-json-schema",
            Self::Bedrock => "bedrock",
            Self::JsonSchema => "json-schema",
            Self::JsonSchema201909 => "json-schema-2019-09",
            Self::JsonSchema202012 => "json-schema-2020-12",
        }
    }

    /// The wire shape of the target.
    #[must_use]
    pub const fn format(self) -> Format {
        match self {
            Self::OpenaiChat | Self::OpenaiStrict => Format::OpenaiChat,
            Self::OpenaiResponses => Format::OpenaiResponses,
            Self::OpenaiLegacy => Format::OpenaiLegacy,
            Self::Anthropic => Format::Anthropic,
            Self::Mcp | Self::Mcp20251125 | Self::Mcp20260728 => Format::Mcp,
            Self::Langchain => Format::Langchain,
            Self::Gemini => Format::Gemini,
            Self::GeminiJsonSchema => Format::GeminiJsonSchema,
            Self::Bedrock => Format::Bedrock,
            Self::JsonSchema | Self::JsonSchema201909 | Self::JsonSchema202012 => {
                Format::JsonSchema
            }
        }
    }

    /// What the target accepts as a tool's name. MCP only recommends a form, so it changes none.
    #[must_use]
    pub const fn name_rule(self) -> Option<NameRule> {
        match self {
            Self::OpenaiChat
            | Self::OpenaiStrict
            | Self::OpenaiResponses
            | Self::OpenaiLegacy
            | Self::Bedrock => Some(NameRule::ASCII_64),
            Self::Anthropic => Some(NameRule::ASCII_128),
            Self::Gemini | Self::GeminiJsonSchema => Some(NameRule::GEMINI),
            Self::Mcp
            | Self::Mcp20251125
            | Self::Mcp20260728
            | Self::Langchain
            | Self::JsonSchema
            | Self::JsonSchema201909
            | Self::JsonSchema202012 => None,
        }
    }

    /// The dialect a tool is rewritten for.
    #[must_use]
    pub const fn dialect(self) -> Option<Dialect> {
        match self {
            Self::OpenaiStrict => Some(Dialect::OpenaiStrict),
            Self::Gemini => Some(Dialect::Gemini),
            _ => None,
        }
    }

    /// The draft a schema is converted to, and whether also where it names another.
    pub(super) const fn draft(self) -> Option<(Draft, bool)> {
        match self {
            Self::JsonSchema => Some((Draft::Draft2019, false)),
            Self::JsonSchema201909 => Some((Draft::Draft2019, true)),
            Self::JsonSchema202012 => Some((Draft::Draft2020, true)),
            _ => None,
        }
    }

    /// Whether a tool needs a name, and its input schema a type.
    #[must_use]
    pub fn requires_name(self) -> bool {
        self.format() != Format::JsonSchema
    }

    /// Whether the target's provider is the one that runs tools of this hosted format.
    pub(super) fn hosts(self, hosted: Format) -> bool {
        match hosted {
            Format::OpenaiHosted => self == Self::OpenaiResponses,
            hosted => hosted.family() == self.format().family(),
        }
    }
}

impl fmt::Display for EmitTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for EmitTarget {
    type Err = UnknownTarget;

    fn from_str(word: &str) -> Result<Self, UnknownTarget> {
        let known = Self::ALL
            .iter()
            .find(|(target, others)| target.id() == word || others.contains(&word));
        known
            .map(|(target, _)| *target)
            .ok_or_else(|| UnknownTarget {
                word: word.to_owned(),
            })
    }
}
