use std::borrow::Cow;

use super::Dialect;
use super::facts::{
    DialectFacts, EnumFacts, FormatFacts, KeywordSet, KeywordSupport, NameSupport, ReferenceFacts,
    SchemaSizeLimits, TypeListFacts,
};
use super::lint::DialectLevel;
use crate::name_rule::NameRule;

const NO_LIMITS: SchemaSizeLimits = SchemaSizeLimits {
    depth: None,
    beyond_depth: DialectLevel::Rejected,
    properties: None,
    enum_values: None,
    union_branches: None,
    bytes: None,
};

const FREE_REFERENCES: ReferenceFacts = ReferenceFacts {
    allowed: KeywordSupport::Supported,
    with_siblings: true,
    recursive: KeywordSupport::Supported,
    inside_unions: true,
    root_only: false,
    to_whole: true,
};

const EVERY_FORMAT: FormatFacts = FormatFacts {
    known: &[],
    others: KeywordSupport::Supported,
};

const GEMINI_PARAMETER: NameRule = NameRule {
    punctuation: "_",
    max_length: 64,
    starts_with_letter: true,
};
const COHERE_NAME: NameRule = NameRule {
    punctuation: "_",
    max_length: usize::MAX,
    starts_with_letter: true,
};

/// Facts that refuse nothing; the other dialects start from them.
pub(super) const UNRESTRICTED: DialectFacts = DialectFacts {
    verified_on: Cow::Borrowed("2026-11-15"),
    source: Cow::Borrowed(""),
    keywords: KeywordSet::AllExcept(Cow::Borrowed(&[])),
    ignored: KeywordSet::Only(Cow::Borrowed(&[])),
    closed_objects: false,
    all_required: false,
    union_at_root: KeywordSupport::Supported,
    type_beside_union: KeywordSupport::Supported,
    type_beside_root_union: KeywordSupport::Supported,
    references: FREE_REFERENCES,
    formats: EVERY_FORMAT,
    lookaround: KeywordSupport::Supported,
    enums: EnumFacts::ANYTHING,
    type_lists: TypeListFacts::ANY,
    untyped: KeywordSupport::Supported,
    untyped_root: KeywordSupport::Refused,
    bare_arrays: KeywordSupport::Supported,
    empty_objects: KeywordSupport::Supported,
    empty_root: KeywordSupport::Supported,
    maps: KeywordSupport::Supported,
    tuples: KeywordSupport::Supported,
    boolean_schemas: KeywordSupport::Supported,
    one_example: false,
    max_min_items: None,
    limits: NO_LIMITS,
    tool_name: None,
    parameter_name: None,
    tool_name_support: NameSupport::SUPPORTED,
    parameter_name_support: NameSupport::SUPPORTED,
    nonempty_description: false,
    inputs_required: false,
    describes_lost_constraints: false,
};

const OPENAI_STRICT: DialectFacts = DialectFacts {
    source: Cow::Borrowed(
        "openai 3.49.0 to_strict_json_schema, openai-agents 0.24.0, pydantic-ai 2.66.0",
    ),
    keywords: KeywordSet::AllExcept(Cow::Borrowed(&[
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
    union_at_root: KeywordSupport::Refused,
    references: ReferenceFacts {
        with_siblings: false,
        root_only: true,
        ..FREE_REFERENCES
    },
    formats: FormatFacts {
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
        others: KeywordSupport::Refused,
    },
    lookaround: KeywordSupport::Refused,
    untyped: KeywordSupport::Refused,
    bare_arrays: KeywordSupport::Refused,
    tuples: KeywordSupport::Refused,
    boolean_schemas: KeywordSupport::Refused,
    limits: SchemaSizeLimits {
        depth: Some(10),
        properties: Some(5000),
        ..NO_LIMITS
    },
    tool_name: Some(NameRule::ASCII_64),
    describes_lost_constraints: true,
    ..UNRESTRICTED
};

const ANTHROPIC_STRICT: DialectFacts = DialectFacts {
    source: Cow::Borrowed("anthropic 2.8.0 transform_schema, pydantic-ai 2.66.0"),
    keywords: KeywordSet::Only(Cow::Borrowed(&[
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
    references: ReferenceFacts {
        recursive: KeywordSupport::Refused,
        ..FREE_REFERENCES
    },
    formats: FormatFacts {
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
        others: KeywordSupport::Refused,
    },
    tuples: KeywordSupport::Refused,
    boolean_schemas: KeywordSupport::Refused,
    max_min_items: Some(1),
    tool_name: Some(NameRule::ASCII_128),
    describes_lost_constraints: true,
    ..UNRESTRICTED
};

const GEMINI: DialectFacts = DialectFacts {
    source: Cow::Borrowed("google-genai 3.1.0 Schema"),
    keywords: KeywordSet::Only(Cow::Borrowed(&[
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
    references: ReferenceFacts {
        root_only: true,
        ..FREE_REFERENCES
    },
    enums: EnumFacts::STRINGS,
    type_lists: TypeListFacts::Nullable,
    tuples: KeywordSupport::Refused,
    boolean_schemas: KeywordSupport::Refused,
    one_example: true,
    tool_name: Some(NameRule::GEMINI),
    parameter_name: Some(GEMINI_PARAMETER),
    ..UNRESTRICTED
};

const GEMINI_JSON_SCHEMA: DialectFacts = DialectFacts {
    source: Cow::Borrowed("google-genai 3.1.0 Interactions docstring"),
    ignored: KeywordSet::Only(Cow::Borrowed(&[
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
    ..UNRESTRICTED
};

const KIMI: DialectFacts = DialectFacts {
    source: Cow::Borrowed("MoonshotAI walle docs and conf.go; kimi-code#2661"),
    keywords: KeywordSet::AllExcept(Cow::Borrowed(&[
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
    type_beside_union: KeywordSupport::Refused,
    type_beside_root_union: KeywordSupport::Refused,
    references: ReferenceFacts {
        with_siblings: false,
        root_only: true,
        to_whole: false,
        ..FREE_REFERENCES
    },
    enums: EnumFacts::ONE_TYPE,
    boolean_schemas: KeywordSupport::Refused,
    limits: SchemaSizeLimits {
        depth: Some(30),
        properties: Some(3000),
        enum_values: Some(1000),
        union_branches: Some(500),
        bytes: Some(120_000),
        ..NO_LIMITS
    },
    tool_name: Some(NameRule::ASCII_64),
    ..UNRESTRICTED
};

const DEEPSEEK_STRICT: DialectFacts = DialectFacts {
    source: Cow::Borrowed("rig-core 0.46, @ai-sdk/deepseek 3.0.56"),
    keywords: KeywordSet::AllExcept(Cow::Borrowed(&["patternProperties"])),
    closed_objects: true,
    all_required: true,
    references: ReferenceFacts {
        allowed: KeywordSupport::Refused,
        inside_unions: false,
        ..FREE_REFERENCES
    },
    formats: FormatFacts {
        known: &["email", "hostname", "ipv4", "ipv6", "uuid"],
        others: KeywordSupport::Refused,
    },
    type_lists: TypeListFacts::SCALARS,
    untyped: KeywordSupport::Refused,
    bare_arrays: KeywordSupport::Refused,
    empty_objects: KeywordSupport::Refused,
    boolean_schemas: KeywordSupport::Refused,
    tool_name: Some(NameRule::ASCII_64),
    ..UNRESTRICTED
};

const BEDROCK: DialectFacts = DialectFacts {
    source: Cow::Borrowed("botocore 1.44.0"),
    tool_name: Some(NameRule::ASCII_64),
    nonempty_description: true,
    inputs_required: true,
    ..UNRESTRICTED
};

const COHERE: DialectFacts = DialectFacts {
    source: Cow::Borrowed("cohere 7.3.1"),
    tool_name: Some(COHERE_NAME),
    parameter_name: Some(COHERE_NAME),
    inputs_required: true,
    ..UNRESTRICTED
};

impl Dialect {
    /// What is known about the dialect.
    #[must_use]
    pub const fn facts(self) -> &'static DialectFacts {
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
