//! The features of servers: tools, and everything else that passes the same gates.

use std::fmt;

/// A kind of feature that a server offers and the gates decide on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeatureKind {
    /// A tool.
    #[default]
    Tool,
    /// A resource or a template of resources, by its address.
    Resource,
    /// A prompt.
    Prompt,
    /// A skill, by its address.
    Skill,
    /// A method of an extension, as `server/method`.
    Method,
}

impl FeatureKind {
    /// Every kind besides tools, in the order of the policy's sections.
    pub const BESIDES_TOOLS: [Self; 4] = [Self::Resource, Self::Prompt, Self::Skill, Self::Method];

    /// The word for a feature of this kind, in messages and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
            Self::Skill => "skill",
            Self::Method => "method",
        }
    }

    /// The policy key with the rules of this kind, which is also the key in deny rules.
    #[must_use]
    pub const fn section(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Resource => "resources",
            Self::Prompt => "prompts",
            Self::Skill => "skills",
            Self::Method => "methods",
        }
    }

    /// The kind that a word stands for.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let others = Self::BESIDES_TOOLS.into_iter();
        others
            .chain([Self::Tool])
            .find(|kind| kind.as_str() == word)
    }

    /// Whether features of this kind are named by addresses, which can have several equivalent spellings.
    pub(crate) const fn has_addresses(self) -> bool {
        matches!(self, Self::Resource | Self::Skill)
    }
}

impl fmt::Display for FeatureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
