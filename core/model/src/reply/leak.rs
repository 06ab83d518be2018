/// Markup of a model's own template that came through as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leak {
    /// Whose markup, as a stable word.
    pub family: &'static str,
    /// Where it came through.
    pub place: LeakPlace,
    /// The markup itself.
    pub sentinel: String,
}

/// Where markup came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeakPlace {
    /// In what the model said to the user.
    Text,
    /// In what it thought aloud.
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
