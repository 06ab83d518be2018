use std::borrow::Cow;
use std::fmt;

/// What a tool does, as far as it is declared or can be inferred from its texts.
///
/// Hints inform people. They are never enforced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    /// The primary verb: read, search, delete, …; empty if unknown.
    pub action: Cow<'static, str>,
    /// What the tool works on.
    pub domain: Domain,
    /// Whether a call changes anything outside the tool.
    pub side_effects: bool,
    /// Whether repeating a call has no further effect.
    pub idempotent: bool,
    /// What a call costs.
    pub cost_estimate: CostEstimate,
}

/// Where each hint comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintsEvidence {
    /// Evidence for [`Hints::action`].
    pub action: Evidence,
    /// Evidence for [`Hints::domain`].
    pub domain: Evidence,
    /// Evidence for [`Hints::side_effects`].
    pub side_effects: Evidence,
    /// Evidence for [`Hints::idempotent`].
    pub idempotent: Evidence,
    /// Evidence for [`Hints::cost_estimate`].
    pub cost_estimate: Evidence,
}

impl Default for Hints {
    fn default() -> Self {
        Self {
            action: Cow::Borrowed(""),
            domain: Domain::Unstated,
            side_effects: false,
            idempotent: true,
            cost_estimate: CostEstimate::Unknown,
        }
    }
}

impl HintsEvidence {
    /// Whether any of the hints is explicit.
    #[must_use]
    pub fn states_any(&self) -> bool {
        let Self {
            action,
            domain,
            side_effects,
            idempotent,
            cost_estimate,
        } = *self;
        [action, domain, side_effects, idempotent, cost_estimate].contains(&Evidence::Explicit)
    }

    /// The same evidence for every hint.
    #[must_use]
    pub const fn all(evidence: Evidence) -> Self {
        Self {
            action: evidence,
            domain: evidence,
            side_effects: evidence,
            idempotent: evidence,
            cost_estimate: evidence,
        }
    }
}

/// Defines a closed vocabulary: an enum, its words, and a parser that refuses any other word.
macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every word of the vocabulary.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word in files.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The value of a word, if it is in the vocabulary.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use vocabulary;

vocabulary! {
    /// What a tool works on.
    Domain {
        /// Not stated.
        Unstated = "",
        /// Files and folders.
        Filesystem = "filesystem",
        /// Pages, searches and HTTP services.
        Web = "web",
        /// Databases.
        Database = "database",
        /// Source code.
        Code = "code",
        /// Electronic mail.
        Email = "email",
        /// None of the others.
        General = "general",
    }
}

vocabulary! {
    /// What a call costs.
    CostEstimate {
        /// Nothing.
        Free = "free",
        /// A small amount.
        Low = "low",
        /// A noticeable amount.
        Medium = "medium",
        /// A large amount.
        High = "high",
        /// Not stated.
        Unknown = "unknown",
    }
}

vocabulary! {
    /// Where a hint comes from, strongest first.
    Evidence {
        /// The definition states the value.
        Explicit = "explicit",
        /// The server's MCP annotations say so.
        Annotation = "annotation",
        /// The words of the name or description suggest it.
        Inferred = "inferred",
        /// No source: the value is the documented default and means unknown.
        Default = "default",
    }
}
