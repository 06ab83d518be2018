use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::did_you_mean::did_you_mean;

/// A wire shape of tool definitions, recognized by structure alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Our own canonical form.
    Canonical,
    /// `{"type":"function","function":{…}}`, shared by most chat-completion providers.
    OpenaiChat,
    /// `{"type":"custom","custom":{…}}`: free text in.
    OpenaiChatCustom,
    /// `{"type":"function","name":…,"parameters":…}`.
    OpenaiResponses,
    /// `{"type":"custom","name":…}`: free text in.
    OpenaiResponsesCustom,
    /// A tool the provider runs itself, such as `{"type":"web_search"}`.
    OpenaiHosted,
    /// `{"name":…,"parameters":…}` without a type.
    OpenaiLegacy,
    /// An object of the OpenAI Agents SDK, recognized by `params_json_schema`.
    OpenaiAgents,
    /// `{"name":…,"input_schema":…}`.
    Anthropic,
    /// A tool the provider defines, such as `{"type":"web_search_20250305"}`.
    AnthropicServer,
    /// `{"name":…,"inputSchema":…}`.
    Mcp,
    /// `{"name":…,"args_schema":…}`.
    Langchain,
    /// `{"name":…,"args":{…}}`: the bare properties of a LangChain tool.
    LangchainArgs,
    /// `{"name":…,"schema":…}`.
    LangchainSchema,
    /// `{"name":…,"properties":…}`: a name beside the schema's own keywords.
    LangchainFlat,
    /// A function declaration with `parameters` in Gemini's own schema dialect.
    Gemini,
    /// A function declaration with `parametersJsonSchema`.
    GeminiJsonSchema,
    /// A function of the Interactions API; its bytes are those of [`Format::OpenaiResponses`].
    GeminiInteractions,
    /// A tool Gemini runs itself, such as `{"googleSearch":{}}`.
    GeminiHosted,
    /// `{"toolSpec":{…}}`.
    Bedrock,
    /// `{"systemTool":…}` or `{"cachePoint":…}`.
    BedrockSystem,
    /// `{"name":…,"parameter_definitions":…}` with Python type names.
    CohereV1,
    /// `{"type":"function","name":…,"inputSchema":…}`.
    VercelAi,
    /// `{"type":"provider","id":"x.y",…}`.
    VercelProvider,
    /// [`Format::OpenaiChat`] with `function.return`.
    HfTransformers,
    /// LlamaIndex tool metadata, recognized by `fn_schema`.
    LlamaIndex,
    /// Semantic Kernel function metadata with a list of parameters.
    SemanticKernel,
    /// `{"name":…,"inputs":…,"output_type":…}`.
    Smolagents,
    /// One operation of an OpenAPI document.
    Openapi,
    /// A skill of an A2A agent card: no schema at all.
    A2aSkill,
    /// A BFCL function document with `dict`, `float` and `tuple` as types.
    Bfcl,
    /// A JSON Schema with a title and no name.
    JsonSchema,
    /// Anything else: fields are picked by heuristic.
    Raw,
}

/// The provider name of a format, as `source_format` in the canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FormatFamily(&'static str);

/// A word that does not name a format.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown format `{word}`{} (known: {})", did_you_mean(word, known_words()), known_words().collect::<Vec<_>>().join(", "))]
pub struct UnknownFormat {
    word: String,
}

impl Format {
    /// Every format, in documentation order.
    pub const ALL: &'static [Self] = &[
        Self::Canonical,
        Self::OpenaiChat,
        Self::OpenaiChatCustom,
        Self::OpenaiResponses,
        Self::OpenaiResponsesCustom,
        Self::OpenaiHosted,
        Self::OpenaiLegacy,
        Self::OpenaiAgents,
        Self::Anthropic,
        Self::AnthropicServer,
        Self::Mcp,
        Self::Langchain,
        Self::LangchainArgs,
        Self::LangchainSchema,
        Self::LangchainFlat,
        Self::Gemini,
        Self::GeminiJsonSchema,
        Self::GeminiInteractions,
        Self::GeminiHosted,
        Self::Bedrock,
        Self::BedrockSystem,
        Self::CohereV1,
        Self::VercelAi,
        Self::VercelProvider,
        Self::HfTransformers,
        Self::LlamaIndex,
        Self::SemanticKernel,
        Self::Smolagents,
        Self::Openapi,
        Self::A2aSkill,
        Self::Bfcl,
        Self::JsonSchema,
        Self::Raw,
    ];

    /// The format's name in commands and files.
    #[must_use]
    pub const fn id(self) -> &'static str {
        self.words().0
    }

    /// The provider name of the format.
    #[must_use]
    pub const fn family(self) -> FormatFamily {
        FormatFamily(self.words().1)
    }

    /// Whether the provider runs the tool itself, so that there is no schema to convert.
    #[must_use]
    pub const fn is_hosted(self) -> bool {
        matches!(
            self,
            Self::OpenaiHosted
                | Self::AnthropicServer
                | Self::GeminiHosted
                | Self::BedrockSystem
                | Self::VercelProvider
        )
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Canonical => ("canonical", "canonical"),
            Self::OpenaiChat => ("openai-chat", "openai"),
            Self::OpenaiChatCustom => ("openai-chat-custom", "openai"),
            Self::OpenaiResponses => ("openai-responses", "openai"),
            Self::OpenaiResponsesCustom => ("openai-responses-custom", "openai"),
            Self::OpenaiHosted => ("openai-hosted", "openai"),
            Self::OpenaiLegacy => ("openai-legacy", "openai"),
            Self::OpenaiAgents => ("openai-agents", "openai"),
            Self::Anthropic => ("anthropic", "anthropic"),
            Self::AnthropicServer => ("anthropic-server", "anthropic"),
            Self::Mcp => ("mcp", "mcp"),
            Self::Langchain => ("langchain", "langchain"),
            Self::LangchainArgs => ("langchain-args", "langchain"),
            Self::LangchainSchema => ("langchain-schema", "langchain"),
            Self::LangchainFlat => ("langchain-flat", "langchain"),
            Self::Gemini => ("gemini", "gemini"),
            Self::GeminiJsonSchema => ("gemini-json-schema", "gemini"),
            Self::GeminiInteractions => ("gemini-interactions", "gemini"),
            Self::GeminiHosted => ("gemini-hosted", "gemini"),
            Self::Bedrock => ("bedrock", "bedrock"),
            Self::BedrockSystem => ("bedrock-system", "bedrock"),
            Self::CohereV1 => ("cohere-v1", "cohere"),
            Self::VercelAi => ("vercel-ai", "vercel"),
            Self::VercelProvider => ("vercel-provider", "vercel"),
            Self::HfTransformers => ("hf", "hf"),
            Self::LlamaIndex => ("llamaindex", "llamaindex"),
            Self::SemanticKernel => ("semantic-kernel", "semantic-kernel"),
            Self::Smolagents => ("smolagents", "smolagents"),
            Self::Openapi => ("openapi", "openapi"),
            Self::A2aSkill => ("a2a-skill", "a2a"),
            Self::Bfcl => ("bfcl", "bfcl"),
            Self::JsonSchema => ("json-schema", "json-schema"),
            Self::Raw => ("raw", "raw"),
        }
    }
}

impl FormatFamily {
    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The default format of the family.
    #[must_use]
    pub fn default_format(self) -> Format {
        Format::ALL
            .iter()
            .copied()
            .find(|format| format.family() == self)
            .unwrap_or(Format::Raw)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl fmt::Display for FormatFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The names of providers and formats, without duplicates.
fn known_words() -> impl Iterator<Item = &'static str> {
    let mut words = Vec::new();
    for format in Format::ALL {
        for word in [format.family().as_str(), format.id()] {
            if !words.contains(&word) {
                words.push(word);
            }
        }
    }
    words.into_iter()
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Self, UnknownFormat> {
        Self::ALL
            .iter()
            .copied()
            .find(|format| format.id() == word)
            .ok_or_else(|| UnknownFormat {
                word: word.to_owned(),
            })
    }
}

impl FromStr for FormatFamily {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Self, UnknownFormat> {
        Format::ALL
            .iter()
            .map(|format| format.family())
            .find(|family| family.as_str() == word)
            .ok_or_else(|| UnknownFormat {
                word: word.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_reads_back_from_its_id() {
        for format in Format::ALL {
            assert_eq!(format.id().parse(), Ok(*format));
            assert_eq!(format.family().as_str().parse(), Ok(format.family()));
        }
    }

    #[test]
    fn a_family_stands_for_its_common_format() {
        let of = |word: &str| word.parse::<FormatFamily>().unwrap().default_format();
        assert_eq!(of("openai"), Format::OpenaiChat);
        assert_eq!(of("gemini"), Format::Gemini);
        assert_eq!(of("raw"), Format::Raw);
    }

    #[test]
    fn an_unknown_word_suggests_the_nearest() {
        let error = "antropic".parse::<Format>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown format `antropic`, did you mean `anthropic`? (known: canonical, openai, openai-chat, \
             openai-chat-custom, openai-responses, openai-responses-custom, openai-hosted, \
             openai-legacy, openai-agents, anthropic, anthropic-server, mcp, langchain, \
             langchain-args, langchain-schema, langchain-flat, gemini, gemini-json-schema, \
             gemini-interactions, gemini-hosted, bedrock, bedrock-system, cohere, cohere-v1, vercel, \
             vercel-ai, vercel-provider, hf, llamaindex, semantic-kernel, smolagents, openapi, a2a, \
             a2a-skill, bfcl, json-schema, raw)"
        );
    }
}
