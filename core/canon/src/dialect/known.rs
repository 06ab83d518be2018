use std::borrow::Cow;

use super::Dialect;
use super::facts::{
    Enums, Facts, Formats, Keywords, Limits, NameMarks, References, Taken, TypeLists,
};
use super::lint::Level;
use crate::emit::NameRule;

const NO_LIMITS: Limits = Limits {
    depth: None,
    beyond_depth: Level::Rejected,
    properties: None,
    enum_values: None,
    union_branches: None,
    bytes: None,
};

const FREE_REFERENCES: References = References {
    allowed: Taken::Honoured,
    with_siblings: true,
    recursive: Taken::Honoured,
    inside_unions: true,
    root_only: false,
    to_whole: true,
};

const EVERY_FORMAT: Formats = Formats {
    known: &[],
    others: Taken::Honoured,
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
pub(super) const ANYTHING: Facts = Facts {
    verified_on: Cow::Borrowed("2026-11-15"),
    source: Cow::Borrowed(""),
    keywords: Keywords::AllBut(Cow::Borrowed(&[])),
    ignored: Keywords::Only(Cow::Borrowed(&[])),
    closed_objects: false,
    all_required: false,
    union_at_root: Taken::Honoured,
    type_beside_union: Taken::Honoured,
    type_beside_root_union: Taken::Honoured,
    references: FREE_REFERENCES,
    formats: EVERY_FORMAT,
    look_around: Taken::Honoured,
    enums: Enums::ANYTHING,
    type_lists: TypeLists::ANY,
    untyped: Taken::Honoured,
    untyped_root: Taken::Refused,
    bare_arrays: Taken::Honoured,
    empty_objects: Taken::Honoured,
    empty_root: Taken::Honoured,
    maps: Taken::Honoured,
    tuples: Taken::Honoured,
    boolean_schemas: Taken::Honoured,
    one_example: false,
    max_min_items: None,
    limits: NO_LIMITS,
    tool_name: None,
    parameter_name: None,
    tool_marks: NameMarks::HONOURED,
    parameter_marks: NameMarks::HONOURED,
    description_says_something: false,
    inputs_required: false,
    tells_lost_constraints: false,
};

const OPENAI_STRICT: Facts = Facts {
    source: Cow::Borrowed(
        "openai 3.49.0 to_strict_json_schema, openai-agents 0.24.0, pydantic-ai 2.66.0",
    ),
    keywords: Keywords::AllBut(Cow::Borrowed(&[
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
    ])),
    closed_objects: true,
    all_required: true,
    union_at_root: Taken::Refused,
    references: References {
        with_siblings: false,
        root_only: true,
        ..FREE_REFERENCES
    },
    formats: Formats {
        known: &[
            "date-time",
            "time",
            "date",
            "duration",
            "email",
            "hostname",
            "ipv4",
            "ipv6",
            "uuid",
        ],
        others: Taken::Refused,
    },
    look_around: Taken::Refused,
    untyped: Taken::Refused,
    bare_arrays: Taken::Refused,
    tuples: Taken::Refused,
    boolean_schemas: Taken::Refused,
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
    source: Cow::Borrowed("anthropic 2.8.0 transform_schema, pydantic-ai 2.66.0"),
    keywords: Keywords::Only(Cow::Borrowed(&[
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
    ])),
    closed_objects: true,
    references: References {
        recursive: Taken::Refused,
        ..FREE_REFERENCES
    },
    formats: Formats {
        known: &[
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
        ],
        others: Taken::Refused,
    },
    tuples: Taken::Refused,
    boolean_schemas: Taken::Refused,
    max_min_items: Some(1),
    tool_name: Some(NameRule::ASCII_128),
    tells_lost_constraints: true,
    ..ANYTHING
};

const GEMINI: Facts = Facts {
    source: Cow::Borrowed("google-genai 3.1.0 Schema"),
    keywords: Keywords::Only(Cow::Borrowed(&[
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
    ])),
    references: References {
        root_only: true,
        ..FREE_REFERENCES
    },
    enums: Enums::STRINGS,
    type_lists: TypeLists::Nullable,
    tuples: Taken::Refused,
    boolean_schemas: Taken::Refused,
    one_example: true,
    tool_name: Some(NameRule::GEMINI),
    parameter_name: Some(GEMINI_PARAMETER),
    ..ANYTHING
};

const GEMINI_JSON_SCHEMA: Facts = Facts {
    source: Cow::Borrowed("google-genai 3.1.0 Interactions docstring"),
    ignored: Keywords::Only(Cow::Borrowed(&[
        "minLength",
        "maxLength",
        "minProperties",
        "maxProperties",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
    ])),
    tool_name: Some(NameRule::GEMINI),
    parameter_name: Some(GEMINI_PARAMETER),
    ..ANYTHING
};

const KIMI: Facts = Facts {
    source: Cow::Borrowed("MoonshotAI walle docs and conf.go; kimi-code#2661"),
    keywords: Keywords::AllBut(Cow::Borrowed(&[
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
    ])),
    type_beside_union: Taken::Refused,
    type_beside_root_union: Taken::Refused,
    references: References {
        with_siblings: false,
        root_only: true,
        to_whole: false,
        ..FREE_REFERENCES
    },
    enums: Enums::ONE_TYPE,
    boolean_schemas: Taken::Refused,
    limits: Limits {
        depth: Some(30),
        properties: Some(3000),
        enum_values: Some(1000),
        union_branches: Some(500),
        bytes: Some(120_000),
        ..NO_LIMITS
    },
    tool_name: Some(NameRule::ASCII_64),
    ..ANYTHING
};

const DEEPSEEK_STRICT: Facts = Facts {
    source: Cow::Borrowed("rig-core 0.46, @ai-sdk/deepseek 3.0.56"),
    keywords: Keywords::AllBut(Cow::Borrowed(&["patternProperties"])),
    closed_objects: true,
    all_required: true,
    references: References {
        allowed: Taken::Refused,
        inside_unions: false,
        ..FREE_REFERENCES
    },
    formats: Formats {
        known: &["email", "hostname", "ipv4", "ipv6", "uuid"],
        others: Taken::Refused,
    },
    type_lists: TypeLists::SCALARS,
    untyped: Taken::Refused,
    bare_arrays: Taken::Refused,
    empty_objects: Taken::Refused,
    boolean_schemas: Taken::Refused,
    tool_name: Some(NameRule::ASCII_64),
    ..ANYTHING
};

const BEDROCK: Facts = Facts {
    source: Cow::Borrowed("botocore 1.44.0"),
    tool_name: Some(NameRule::ASCII_64),
    description_says_something: true,
    inputs_required: true,
    ..ANYTHING
};

const COHERE: Facts = Facts {
    source: Cow::Borrowed("cohere 7.3.1"),
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
