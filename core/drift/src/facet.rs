use serde_json::Value;
use toolwarden_model::json::Pointer;

/// A part of a definition that is pinned and compared by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Facet {
    /// The name that calls use.
    Name,
    /// The name that people read.
    Title,
    /// The tool's description of its purpose.
    Description,
    /// The schema of the arguments.
    Input,
    /// The schema of the result.
    Output,
    /// The hints about what the tool does.
    Annotations,
    /// The `_meta` member.
    Meta,
    /// The icons.
    Icons,
    /// Everything else, known or unknown.
    Other,
    /// What the tool returns; not part of the definition.
    Result,
}

impl Facet {
    /// Every facet of a definition.
    pub const ALL: [Self; 9] = [
        Self::Name,
        Self::Title,
        Self::Description,
        Self::Input,
        Self::Output,
        Self::Annotations,
        Self::Meta,
        Self::Icons,
        Self::Other,
    ];

    /// The word used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Title => "title",
            Self::Description => "description",
            Self::Input => "input",
            Self::Output => "output",
            Self::Annotations => "annotations",
            Self::Meta => "meta",
            Self::Icons => "icons",
            Self::Other => "other",
            Self::Result => "result",
        }
    }
}

/// The locations of the facets in a definition. Any other place belongs to [`Facet::Other`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FacetLayout {
    places: Vec<(Facet, Pointer)>,
    /// What leaving a member out means.
    implied: Vec<(Pointer, Value)>,
}

impl FacetLayout {
    /// The locations of the facets; a place inside two of them belongs to the inner one.
    #[must_use]
    pub fn new(places: impl IntoIterator<Item = (Facet, Pointer)>) -> Self {
        let mut places: Vec<(Facet, Pointer)> = places.into_iter().collect();
        places.sort_by_key(|(facet, pointer)| (std::cmp::Reverse(pointer.as_str().len()), *facet));
        Self {
            places,
            implied: Vec::new(),
        }
    }

    /// The layout of a format in which leaving a member out means this value.
    #[must_use]
    pub fn with_implied(mut self, member: Pointer, value: Value) -> Self {
        self.implied.push((member, value));
        self
    }

    /// What leaving out the member at a place means, if the format says so.
    #[must_use]
    pub fn implied(&self, at: &Pointer) -> Option<&Value> {
        let mut implied = self.implied.iter();
        implied
            .find(|(member, _)| member == at)
            .map(|(_, value)| value)
    }

    /// The layout of an MCP definition.
    #[must_use]
    pub fn mcp() -> Self {
        Self::new([
            (Facet::Name, Pointer::of(["name"])),
            (Facet::Title, Pointer::of(["title"])),
            (Facet::Description, Pointer::of(["description"])),
            (Facet::Input, Pointer::of(["inputSchema"])),
            (Facet::Output, Pointer::of(["outputSchema"])),
            (Facet::Annotations, Pointer::of(["annotations"])),
            (Facet::Meta, Pointer::of(["_meta"])),
            (Facet::Icons, Pointer::of(["icons"])),
        ])
    }

    /// The facet a place of the definition belongs to.
    #[must_use]
    pub fn facet(&self, at: &Pointer) -> Facet {
        let inside = |outer: &Pointer| {
            at.as_str()
                .strip_prefix(outer.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let found = self.places.iter().find(|(_, place)| inside(place));
        found.map_or(Facet::Other, |(facet, _)| *facet)
    }

    /// The location of a facet.
    #[must_use]
    pub fn place(&self, facet: Facet) -> Option<&Pointer> {
        let mut places = self.places.iter();
        places
            .find(|(known, _)| *known == facet)
            .map(|(_, pointer)| pointer)
    }
}

/// An observed definition, with the locations of its facets.
#[derive(Clone, Debug)]
pub struct ObservedDefinition<'d> {
    /// The name that calls use.
    pub name: &'d str,
    /// The definition as received.
    pub definition: &'d Value,
    /// The locations of its facets.
    pub layout: &'d FacetLayout,
}

impl<'d> ObservedDefinition<'d> {
    /// The value of a facet, if the definition has it.
    #[must_use]
    pub fn facet(&self, facet: Facet) -> Option<&'d Value> {
        self.layout.place(facet)?.find(self.definition)
    }
}
