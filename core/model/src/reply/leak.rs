/// Markup of a model's own template that leaked into the reply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leak {
    /// The family of the markup, as a stable word.
    pub family: &'static str,
    /// Where it leaked.
    pub place: LeakPlace,
    /// The markup itself.
    pub sentinel: String,
}

/// Where markup leaked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeakPlace {
    /// In the text for the user.
    Text,
    /// In the reasoning.
    Reasoning,
    /// In the arguments of a call.
    Arguments,
}

impl LeakPlace {
    /// Every place.
    pub const ALL: [Self; 3] = [Self::Text, Self::Reasoning, Self::Arguments];

    /// The word used in snapshots.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
            Self::Arguments => "arguments",
        }
    }
}
