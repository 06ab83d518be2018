use std::borrow::Cow;

use super::lint::DialectLevel;
use crate::name_rule::NameRule;

/// The known facts about a dialect. They are data, not code, because providers change them.
#[derive(Clone, Debug)]
pub struct DialectFacts {
    /// When the facts were last checked against their source.
    pub verified_on: Cow<'static, str>,
    /// Where they come from.
    pub source: Cow<'static, str>,
    /// Keywords that may occur.
    pub(super) keywords: KeywordSet,
    /// Keywords that may occur and have no effect.
    pub(super) ignored: KeywordSet,
    /// Every object must say `additionalProperties: false`.
    pub(super) closed_objects: bool,
    /// Every property must be required.
    pub(super) all_required: bool,
    /// The root may be a union.
    pub(super) union_at_root: KeywordSupport,
    /// `type` may occur beside `anyOf`, except at the root.
    pub(super) type_beside_union: KeywordSupport,
    /// `type` may occur beside `anyOf` at the root.
    pub(super) type_beside_root_union: KeywordSupport,
    pub(super) references: ReferenceFacts,
    pub(super) formats: FormatFacts,
    /// Patterns may use lookaround.
    pub(super) lookaround: KeywordSupport,
    pub(super) enums: EnumFacts,
    pub(super) type_lists: TypeListFacts,
    /// A value may have no type at all.
    pub(super) untyped: KeywordSupport,
    /// The root may have no type; one that it has is `object` in any case.
    pub(super) untyped_root: KeywordSupport,
    /// An array may have no `items`.
    pub(super) bare_arrays: KeywordSupport,
    /// An object inside may have no properties.
    pub(super) empty_objects: KeywordSupport,
    /// The root may have no properties.
    pub(super) empty_root: KeywordSupport,
    /// `additionalProperties` may hold a schema.
    pub(super) maps: KeywordSupport,
    /// `items` may be a list.
    pub(super) tuples: KeywordSupport,
    /// `true` and `false` are accepted as schemas.
    pub(super) boolean_schemas: KeywordSupport,
    /// `examples` may hold one value only.
    pub(super) one_example: bool,
    /// The largest `minItems`.
    pub(super) max_min_items: Option<u64>,
    pub(super) limits: SchemaSizeLimits,
    pub(super) tool_name: Option<NameRule>,
    pub(super) parameter_name: Option<NameRule>,
    /// Which characters and lengths a tool name may have.
    pub(super) tool_name_support: NameSupport,
    /// Which characters and lengths a parameter name may have.
    pub(super) parameter_name_support: NameSupport,
    /// A description, where present, must not be empty.
    pub(super) nonempty_description: bool,
    /// The tool must have an input schema.
    pub(super) inputs_required: bool,
    /// A constraint that is removed is stated in the description instead.
    pub(super) describes_lost_constraints: bool,
}

/// How a provider handles a schema feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeywordSupport {
    /// The provider accepts and honours it.
    Supported,
    /// The provider accepts it and does not honour it.
    Ignored,
    /// The provider rejects the request.
    Refused,
}

/// A set of keywords.
#[derive(Clone, Debug)]
pub(super) enum KeywordSet {
    /// These, and no others.
    Only(Cow<'static, [&'static str]>),
    /// All but these.
    AllExcept(Cow<'static, [&'static str]>),
}

/// How references may occur.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReferenceFacts {
    pub(super) allowed: KeywordSupport,
    pub(super) with_siblings: bool,
    pub(super) recursive: KeywordSupport,
    pub(super) inside_unions: bool,
    /// Definitions may occur only at the root.
    pub(super) root_only: bool,
    /// A reference may point to the whole schema.
    pub(super) to_whole: bool,
}

/// What `format` may say.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormatFacts {
    /// The formats the provider accepts.
    pub(super) known: &'static [&'static str],
    /// How the provider handles all other formats.
    pub(super) others: KeywordSupport,
}

/// What `enum` may hold besides strings.
#[derive(Clone, Copy, Debug)]
pub(super) struct EnumFacts {
    /// Nothing but integers, or nothing but numbers.
    pub(super) numbers: KeywordSupport,
    /// Anything else.
    pub(super) mixed: KeywordSupport,
}

/// How `type` may be a list.
#[derive(Clone, Copy, Debug)]
pub(super) enum TypeListFacts {
    /// One type and null.
    Nullable,
    /// It depends on what is in the list.
    Of {
        scalars: KeywordSupport,
        /// `object` or `array` beside another type.
        containers: KeywordSupport,
    },
}

/// Which characters and lengths of names a provider supports, besides its name rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameSupport {
    pub(super) dot: KeywordSupport,
    pub(super) hyphen: KeywordSupport,
    pub(super) space: KeywordSupport,
    pub(super) dollar: KeywordSupport,
    pub(super) digit_first: KeywordSupport,
    pub(super) non_ascii: KeywordSupport,
    /// More than 64 characters.
    pub(super) long: KeywordSupport,
}

/// How large a schema may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchemaSizeLimits {
    pub(super) depth: Option<usize>,
    /// How the provider handles a deeper schema.
    pub(super) beyond_depth: DialectLevel,
    pub(super) properties: Option<usize>,
    pub(super) enum_values: Option<usize>,
    pub(super) union_branches: Option<usize>,
    pub(super) bytes: Option<usize>,
}

impl DialectFacts {
    /// Whether a keyword may occur.
    pub(super) fn accepts(&self, keyword: &str) -> bool {
        self.keywords.contains(keyword)
    }
}

impl KeywordSet {
    pub(super) fn contains(&self, keyword: &str) -> bool {
        match self {
            Self::Only(keywords) => keywords.contains(&keyword),
            Self::AllExcept(keywords) => !keywords.contains(&keyword),
        }
    }
}

impl KeywordSupport {
    /// The level of a finding about the feature; `None` if the target supports it.
    pub(super) const fn finding_level(self) -> Option<DialectLevel> {
        match self {
            Self::Supported => None,
            Self::Ignored => Some(DialectLevel::Ignored),
            Self::Refused => Some(DialectLevel::Rejected),
        }
    }
}

impl EnumFacts {
    pub(super) const ANYTHING: Self = Self {
        numbers: KeywordSupport::Supported,
        mixed: KeywordSupport::Supported,
    };
    pub(super) const STRINGS: Self = Self {
        numbers: KeywordSupport::Refused,
        mixed: KeywordSupport::Refused,
    };
    /// All strings, all integers or all numbers.
    pub(super) const ONE_TYPE: Self = Self {
        numbers: KeywordSupport::Supported,
        mixed: KeywordSupport::Refused,
    };
}

impl TypeListFacts {
    pub(super) const ANY: Self = Self::Of {
        scalars: KeywordSupport::Supported,
        containers: KeywordSupport::Supported,
    };
    /// No `object` and no `array` among them.
    pub(super) const SCALARS: Self = Self::Of {
        scalars: KeywordSupport::Supported,
        containers: KeywordSupport::Refused,
    };
}

impl NameSupport {
    pub(super) const SUPPORTED: Self = Self {
        dot: KeywordSupport::Supported,
        hyphen: KeywordSupport::Supported,
        space: KeywordSupport::Supported,
        dollar: KeywordSupport::Supported,
        digit_first: KeywordSupport::Supported,
        non_ascii: KeywordSupport::Supported,
        long: KeywordSupport::Supported,
    };
}
