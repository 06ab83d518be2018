use std::borrow::Cow;

use super::lint::Level;
use crate::emit::NameRule;

/// What is known about a dialect. Data, not code: providers change their minds.
#[derive(Clone, Debug)]
pub struct Facts {
    /// When the facts were last checked against their source.
    pub verified_on: Cow<'static, str>,
    /// Where they come from.
    pub source: Cow<'static, str>,
    /// Keywords that may occur.
    pub(super) keywords: Keywords,
    /// Keywords that may occur and mean nothing.
    pub(super) ignored: Keywords,
    /// Every object must say `additionalProperties: false`.
    pub(super) closed_objects: bool,
    /// Every property must be required.
    pub(super) all_required: bool,
    /// A union may stand at the root.
    pub(super) union_at_root: Taken,
    /// `type` may stand beside `anyOf`, except at the root.
    pub(super) type_beside_union: Taken,
    /// `type` may stand beside `anyOf` at the root.
    pub(super) type_beside_root_union: Taken,
    pub(super) references: References,
    pub(super) formats: Formats,
    /// Patterns may look around.
    pub(super) look_around: Taken,
    pub(super) enums: Enums,
    pub(super) type_lists: TypeLists,
    /// A value may have no type at all.
    pub(super) untyped: Taken,
    /// The root may have no type; one that it has is `object` in any case.
    pub(super) untyped_root: Taken,
    /// An array may have no `items`.
    pub(super) bare_arrays: Taken,
    /// An object inside may have no properties.
    pub(super) empty_objects: Taken,
    /// The root may have no properties.
    pub(super) empty_root: Taken,
    /// `additionalProperties` may hold a schema.
    pub(super) maps: Taken,
    /// `items` may be a list.
    pub(super) tuples: Taken,
    /// `true` and `false` may stand for schemas.
    pub(super) boolean_schemas: Taken,
    /// `examples` may hold one value only.
    pub(super) one_example: bool,
    /// The largest `minItems`.
    pub(super) max_min_items: Option<u64>,
    pub(super) limits: Limits,
    pub(super) tool_name: Option<NameRule>,
    pub(super) parameter_name: Option<NameRule>,
    /// What a name of a tool may have about it.
    pub(super) tool_marks: NameMarks,
    /// What a name of a parameter may have about it.
    pub(super) parameter_marks: NameMarks,
    /// A description that is there must say something.
    pub(super) description_says_something: bool,
    /// There must be an input schema.
    pub(super) inputs_required: bool,
    /// A constraint that has to go is told in the description.
    pub(super) tells_lost_constraints: bool,
}

/// What a target does with something in a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It takes it and does as it says.
    Honoured,
    /// It takes it and does not do as it says.
    Ignored,
    /// It rejects the request.
    Refused,
}

/// A set of keywords.
#[derive(Clone, Debug)]
pub(super) enum Keywords {
    /// These, and no others.
    Only(Cow<'static, [&'static str]>),
    /// All but these.
    AllBut(Cow<'static, [&'static str]>),
}

/// How references may occur.
#[derive(Clone, Copy, Debug)]
pub(super) struct References {
    pub(super) allowed: Taken,
    pub(super) with_siblings: bool,
    pub(super) recursive: Taken,
    pub(super) inside_unions: bool,
    /// Definitions may stand only at the root.
    pub(super) root_only: bool,
    /// A reference may lead to the whole schema.
    pub(super) to_whole: bool,
}

/// What `format` may say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Formats {
    /// The formats that are taken.
    pub(super) known: &'static [&'static str],
    /// What becomes of all others.
    pub(super) others: Taken,
}

/// What `enum` may hold besides strings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Enums {
    /// Nothing but integers, or nothing but numbers.
    pub(super) numbers: Taken,
    /// Anything else.
    pub(super) mixed: Taken,
}

/// How `type` may be a list.
#[derive(Clone, Copy, Debug)]
pub(super) enum TypeLists {
    /// One type and null.
    Nullable,
    /// It depends on what is in the list.
    Of {
        scalars: Taken,
        /// `object` or `array` beside another type.
        containers: Taken,
    },
}

/// What a name may have about it, apart from the rule for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameMarks {
    pub(super) dot: Taken,
    pub(super) hyphen: Taken,
    pub(super) space: Taken,
    pub(super) dollar: Taken,
    pub(super) digit_first: Taken,
    pub(super) beyond_ascii: Taken,
    /// More than 64 characters.
    pub(super) long: Taken,
}

/// How large a schema may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) depth: Option<usize>,
    /// What becomes of a schema that is deeper.
    pub(super) beyond_depth: Level,
    pub(super) properties: Option<usize>,
    pub(super) enum_values: Option<usize>,
    pub(super) union_branches: Option<usize>,
    pub(super) bytes: Option<usize>,
}

impl Facts {
    /// Whether a keyword may occur.
    pub(super) fn accepts(&self, keyword: &str) -> bool {
        self.keywords.contain(keyword)
    }
}

impl Keywords {
    pub(super) fn contain(&self, keyword: &str) -> bool {
        match self {
            Self::Only(keywords) => keywords.contains(&keyword),
            Self::AllBut(keywords) => !keywords.contains(&keyword),
        }
    }
}

impl Taken {
    /// How much a target minds, if it does.
    pub(super) const fn objection(self) -> Option<Level> {
        match self {
            Self::Honoured => None,
            Self::Ignored => Some(Level::Ignored),
            Self::Refused => Some(Level::Rejected),
        }
    }
}

impl Enums {
    pub(super) const ANYTHING: Self = Self {
        numbers: Taken::Honoured,
        mixed: Taken::Honoured,
    };
    pub(super) const STRINGS: Self = Self {
        numbers: Taken::Refused,
        mixed: Taken::Refused,
    };
    /// All strings, all integers or all numbers.
    pub(super) const ONE_TYPE: Self = Self {
        numbers: Taken::Honoured,
        mixed: Taken::Refused,
    };
}

impl TypeLists {
    pub(super) const ANY: Self = Self::Of {
        scalars: Taken::Honoured,
        containers: Taken::Honoured,
    };
    /// No `object` and no `array` among them.
    pub(super) const SCALARS: Self = Self::Of {
        scalars: Taken::Honoured,
        containers: Taken::Refused,
    };
}

impl NameMarks {
    pub(super) const HONOURED: Self = Self {
        dot: Taken::Honoured,
        hyphen: Taken::Honoured,
        space: Taken::Honoured,
        dollar: Taken::Honoured,
        digit_first: Taken::Honoured,
        beyond_ascii: Taken::Honoured,
        long: Taken::Honoured,
    };
}
