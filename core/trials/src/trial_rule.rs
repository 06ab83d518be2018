use std::fmt;

/// What a difference between trials is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialRule {
    /// The type of the argument of this name.
    ArgNesting(String),
    /// The names of the arguments.
    ArgKeys,
    /// How often an optional argument is there.
    Argument,
    /// The type of an argument, where the schema allows both.
    ArgumentType,
    /// How arguments are sent.
    ArgumentsEncoding,
    /// Something sent as a call is not a call.
    BrokenCall,
    /// A client library raises on a reply, or loses or garbles its calls.
    ClientBreak,
    /// Whether the tool is called where it is asked for.
    Emitted,
    /// The minimum share of trials that call the tool.
    EmitRate,
    /// Whether the arguments are those the case asks for.
    ExactArguments,
    /// Whether the model does what the case expects.
    Expectation,
    /// An argument that the schema does not name, though it accepts others.
    ExtraKey,
    /// Whether the reason to stop goes with the calls.
    FinishConsistency,
    /// The reason to stop.
    FinishReason,
    /// A call of a tool that the case forbids.
    ForbiddenCall,
    /// The class of ids.
    IdClass,
    /// How long a reply takes.
    Latency,
    /// Markup in text.
    Leak,
    /// A required argument is missing.
    MissingRequired,
    /// The model that answers.
    Models,
    /// An irregularity of a reply.
    Note,
    /// Only one of two snapshots has the tool.
    OnlyIn,
    /// How many times one reply calls the tool.
    ParallelArity,
    /// An argument that the schema does not name and rejects.
    RejectedKey,
    /// Whether all arguments fit the schema.
    SchemaValid,
    /// The minimum share of calls that fit the schema.
    SchemaValidRate,
    /// Arguments break any other rule of the schema.
    SchemaViolation,
    /// Whether a streamed reply is like the whole one.
    StreamEquivalence,
    /// Whether the model says something beside its calls.
    Text,
    /// How many tokens a reply takes.
    Tokens,
    /// The format of ids, in the words of tooldrift.
    ToolCallIdFormat,
    /// The provider refuses the tools, and with them the request.
    ToolsRejected,
    /// The tools of the suite that a snapshot has.
    Tools,
    /// A call of a tool that was not offered.
    UndeclaredTool,
    /// Whether the ids of a reply are all different.
    UniqueIds,
    /// The arguments are no JSON object.
    UnreadableArguments,
    /// The wire API.
    Wire,
    /// A fault that has no rule of its own.
    Wrong,
    /// An argument is of a type that the schema rejects.
    WrongType,
}

impl TrialRule {
    /// The faults with zero tolerance: a caller acts on each of them, so one occurrence is too many.
    pub const ZERO_TOLERANCE: [Self; 10] = [
        Self::BrokenCall,
        Self::ClientBreak,
        Self::ForbiddenCall,
        Self::Leak,
        Self::MissingRequired,
        Self::SchemaViolation,
        Self::UndeclaredTool,
        Self::UnreadableArguments,
        Self::WrongType,
        Self::RejectedKey,
    ];

    /// Whether one occurrence is too many.
    #[must_use]
    pub fn is_zero_tolerance(&self) -> bool {
        Self::ZERO_TOLERANCE.contains(self)
    }

    /// The stable word, without the name of an argument.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::ArgNesting(_) => "arg_nesting",
            Self::ArgKeys => "arg_keys",
            Self::Argument => "argument",
            Self::ArgumentType => "argument_type",
            Self::ArgumentsEncoding => "arguments_encoding",
            Self::BrokenCall => "broken_call",
            Self::ClientBreak => "client_break",
            Self::Emitted => "emitted",
            Self::EmitRate => "emit_rate",
            Self::ExactArguments => "exact_arguments",
            Self::Expectation => "expectation",
            Self::ExtraKey => "extra_key",
            Self::FinishConsistency => "finish_consistency",
            Self::FinishReason => "finish_reason",
            Self::ForbiddenCall => "forbidden_call",
            Self::IdClass => "id_class",
            Self::Latency => "latency",
            Self::Leak => "leak",
            Self::MissingRequired => "missing_required",
            Self::Models => "models",
            Self::Note => "note",
            Self::OnlyIn => "only_in",
            Self::ParallelArity => "parallel_arity",
            // Reports have one word for both.
            Self::RejectedKey => "extra_key",
            Self::SchemaValid => "schema_valid",
            Self::SchemaValidRate => "schema_valid_rate",
            Self::SchemaViolation => "schema_violation",
            Self::StreamEquivalence => "stream_equivalence",
            Self::Text => "text",
            Self::Tokens => "tokens",
            Self::ToolCallIdFormat => "tool_call_id_format",
            Self::Tools => "tools",
            Self::ToolsRejected => "tools_rejected",
            Self::UndeclaredTool => "undeclared_tool",
            Self::UniqueIds => "unique_ids",
            Self::UnreadableArguments => "unreadable_arguments",
            Self::Wire => "wire",
            Self::Wrong => "wrong",
            Self::WrongType => "wrong_type",
        }
    }
}

/// The word used in reports, which names the argument if there is one.
impl fmt::Display for TrialRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())?;
        match self {
            Self::ArgNesting(argument) => write!(f, ":{argument}"),
            _ => Ok(()),
        }
    }
}
