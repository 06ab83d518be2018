use super::Dialect;
use crate::emit::NameRule;

/// What is known about a dialect. Data, not code: providers change their minds.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// When the facts were last checked against their source.
    pub verified_on: &'static str,
    /// Where they come from.
    pub source: &'static str,
    /// Keywords that may occur.
    pub(super) keywords: Keywords,
    /// Keywords that may occur and mean nothing.
    pub(super) ignored: &'static [&'static str],
    /// Every object must say `additionalProperties: false`.
    pub(super) closed_objects: bool,
    /// Every property must be required.
    pub(super) all_required: bool,
    /// A union may stand at the root.
    pub(super) union_at_root: bool,
    /// `type` may stand beside `anyOf`.
    pub(super) type_beside_union: bool,
    pub(super) references: References,
    /// The values of `format` that may occur; all if nothing is said.
    pub(super) formats: Option<&'static [&'static str]>,
    /// Patterns may look around.
    pub(super) look_around: bool,
    pub(super) enums: Enums,
    pub(super) type_lists: TypeLists,
    /// A value may have no type at all.
    pub(super) untyped: bool,
    /// An object inside may have no properties.
    pub(super) empty_objects: bool,
    /// `true` and `false` may stand for schemas.
    pub(super) boolean_schemas: bool,
    /// `examples` may hold one value only.
    pub(super) one_example: bool,
    /// The largest `minItems`.
    pub(super) max_min_items: Option<u64>,
    pub(super) limits: Limits,
    pub(super) tool_name: Option<NameRule>,
    pub(super) parameter_name: Option<NameRule>,
    /// A description that is there must say something.
    pub(super) description_says_something: bool,
    /// There must be an input schema.
    pub(super) inputs_required: bool,
    /// A constraint that has to go is told in the description.
    pub(super) tells_lost_constraints: bool,
}

/// Which keywords may occur.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keywords {
    /// These, and no others.
    Only(&'static [&'static str]),
    /// All but these.
    AllBut(&'static [&'static str]),
}

/// How references may occur.
#[derive(Clone, Copy, Debug)]
pub(super) struct References {
    pub(super) allowed: bool,
    pub(super) with_siblings: bool,
    pub(super) recursive: bool,
    pub(super) inside_unions: bool,
    /// Definitions may stand only at the root.
    pub(super) root_only: bool,
    /// A reference may lead to the whole schema.
    pub(super) to_whole: bool,
}

/// What `enum` may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Enums {
    Anything,
    Strings,
    /// All strings, all integers or all numbers.
    OneType,
}

/// How `type` may be a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypeLists {
    Any,
    /// One type, or one type and null.
    Nullable,
    /// No `object` and no `array` among them.
    Scalars,
}

/// How large a schema may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) depth: Option<usize>,
    pub(super) properties: Option<usize>,
    pub(super) enum_values: Option<usize>,
    pub(super) union_branches: Option<usize>,
    pub(super) bytes: Option<usize>,
}

const NO_LIMITS: Limits = Limits {
    depth: None,
    properties: None,
    enum_values: None,
    union_branches: None,
    bytes: None,
};

const FREE_REFERENCES: References = References {
    allowed: true,
    with_siblings: true,
    recursive: true,
    inside_unions: true,
    root_only: false,
    to_whole: true,
};

const GEMINI_PARAMETER: NameRule = NameRule {
    punctuation: "_",
    max_length: 64,
    starts_with_letter: true,
};
const COHERE_WORD: NameRule = NameRule {
    punctuation: "_",
    max_length: usize::MAX,
    starts_with_letter: true,
};

/// Nothing is refused: the ground the other dialects stand on.
const ANYTHING: Facts = Facts {
    verified_on: "2026-11-15",
    source: "",
    keywords: Keywords::AllBut(&[]),
    ignored: &[],
    closed_objects: false,
    all_required: false,
    union_at_root: true,
    type_beside_union: true,
    references: FREE_REFERENCES,
    formats: None,
    look_around: true,
    enums: Enums::Anything,
    type_lists: TypeLists::Any,
    untyped: true,
    empty_objects: true,
    boolean_schemas: true,
    one_example: false,
    max_min_items: None,
    limits: NO_LIMITS,
    tool_name: None,
    parameter_name: None,
    description_says_something: false,
    inputs_required: false,
    tells_lost_constraints: false,
};

const OPENAI_STRICT: Facts = Facts {
    source: "openai 3.49.0 to_strict_json_schema, openai-agents 0.24.0, pydantic-ai 2.66.0",
    keywords: Keywords::AllBut(&[
        "patternProperties",
        "unevaluatedProperties",
        "unevaluatedItems",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "contains",
        "minContains",
        "maxContains",
        "uniqueItems",
        "default",
        "prefixItems",
        "oneOf",
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "additionalItems",
    ]),
    closed_objects: true,
    all_required: true,
    union_at_root: false,
    references: References {
        with_siblings: false,
        root_only: true,
        ..FREE_REFERENCES
    },
    formats: Some(&[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "uuid",
    ]),
    look_around: false,
    untyped: false,
    boolean_schemas: false,
    limits: Limits {
        depth: Some(10),
        properties: Some(5000),
        ..NO_LIMITS
    },
    tool_name: Some(NameRule::ASCII_64),
    tells_lost_constraints: true,
    ..ANYTHING
};

const ANTHROPIC_STRICT: Facts = Facts {
    source: "anthropic 2.8.0 transform_schema, pydantic-ai 2.66.0",
    keywords: Keywords::Only(&[
        "type",
        "enum",
        "const",
        "anyOf",
        "allOf",
        "properties",
        "required",
        "items",
        "minItems",
        "format",
        "additionalProperties",
        "$ref",
        "$defs",
        "definitions",
        "description",
        "title",
        "default",
    ]),
    closed_objects: true,
    references: References {
        recursive: false,
        ..FREE_REFERENCES
    },
    formats: Some(&[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    ]),
    boolean_schemas: false,
    max_min_items: Some(1),
    tool_name: Some(NameRule::ASCII_128),
    tells_lost_constraints: true,
    ..ANYTHING
};

const GEMINI: Facts = Facts {
    source: "google-genai 3.1.0 Schema",
    keywords: Keywords::Only(&[
        "additionalProperties",
        "$defs",
        "$ref",
        "anyOf",
        "default",
        "description",
        "enum",
        "examples",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "pattern",
        "properties",
        "propertyOrdering",
        "required",
        "title",
        "type",
    ]),
    references: References {
        root_only: true,
        ..FREE_REFERENCES
    },
    enums: Enums::Strings,
    type_lists: TypeLists::Nullable,
    boolean_schemas: false,
    one_example: true,
    tool_name: Some(NameRule::GEMINI),
    parameter_name: Some(GEMINI_PARAMETER),
    ..ANYTHING
};

const GEMINI_JSON_SCHEMA: Facts = Facts {
    source: "google-genai 3.1.0 Interactions docstring",
    ignored: &[
        "minLength",
        "maxLength",
        "minProperties",
        "maxProperties",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
    ],
    tool_name: Some(NameRule::GEMINI),
    parameter_name: Some(GEMINI_PARAMETER),
    ..ANYTHING
};

const KIMI: Facts = Facts {
    source: "MoonshotAI walle docs and conf.go; kimi-code#2661",
    keywords: Keywords::AllBut(&[
        "const",
        "pattern",
        "format",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "not",
        "if",
        "then",
        "else",
        "prefixItems",
        "allOf",
        "oneOf",
        "$schema",
        "$comment",
        "definitions",
        "examples",
    ]),
    type_beside_union: false,
    references: References {
        with_siblings: false,
        root_only: true,
        to_whole: false,
        ..FREE_REFERENCES
    },
    enums: Enums::OneType,
    boolean_schemas: false,
    limits: Limits {
        depth: Some(30),
        properties: Some(3000),
        enum_values: Some(1000),
        union_branches: Some(500),
        bytes: Some(120_000),
    },
    tool_name: Some(NameRule::ASCII_64),
    ..ANYTHING
};

const DEEPSEEK_STRICT: Facts = Facts {
    source: "rig-core 0.46, @ai-sdk/deepseek 3.0.56",
    keywords: Keywords::AllBut(&["patternProperties"]),
    closed_objects: true,
    all_required: true,
    references: References {
        allowed: false,
        inside_unions: false,
        ..FREE_REFERENCES
    },
    formats: Some(&["email", "hostname", "ipv4", "ipv6", "uuid"]),
    type_lists: TypeLists::Scalars,
    untyped: false,
    empty_objects: false,
    boolean_schemas: false,
    tool_name: Some(NameRule::ASCII_64),
    ..ANYTHING
};

const BEDROCK: Facts = Facts {
    source: "botocore 1.44.0",
    tool_name: Some(NameRule::ASCII_64),
    description_says_something: true,
    inputs_required: true,
    ..ANYTHING
};

const COHERE: Facts = Facts {
    source: "cohere 7.3.1",
    tool_name: Some(COHERE_WORD),
    parameter_name: Some(COHERE_WORD),
    inputs_required: true,
    ..ANYTHING
};

impl Dialect {
    /// What is known about the dialect.
    #[must_use]
    pub const fn facts(self) -> &'static Facts {
        match self {
            Self::OpenaiStrict => &OPENAI_STRICT,
            Self::AnthropicStrict => &ANTHROPIC_STRICT,
            Self::Gemini => &GEMINI,
            Self::GeminiJsonSchema => &GEMINI_JSON_SCHEMA,
            Self::Kimi => &KIMI,
            Self::DeepseekStrict => &DEEPSEEK_STRICT,
            Self::Bedrock => &BEDROCK,
            Self::Cohere => &COHERE,
        }
    }
}

impl Facts {
    /// Whether a keyword may occur.
    pub(super) fn accepts(&self, keyword: &str) -> bool {
        match self.keywords {
            Keywords::Only(keywords) => keywords.contains(&keyword),
            Keywords::AllBut(keywords) => !keywords.contains(&keyword),
        }
    }
}
