use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::reply::{
    ArgumentsClass, FinishClass, Leak, NotMeasured, StreamMode, TokenUsage, WireApi,
};

/// Which model was asked, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialOrigin {
    /// The provider.
    pub provider: String,
    /// The requested model.
    pub model_id: String,
    /// The wire API of the endpoint.
    pub wire: WireApi,
    /// The time, in RFC 3339.
    pub at: Option<String>,
}

/// One attempt at one case by a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The case.
    pub case: String,
    /// Whether the reply came whole or streamed.
    pub mode: StreamMode,
    /// The index of the repetition of the case in this mode.
    pub repetition: u32,
    /// The measured reply, or why there is none.
    pub outcome: Result<MeasuredReply, NotMeasured>,
    /// How many requests it took.
    pub attempts: u32,
    /// How long the whole reply took.
    pub latency_ms: Option<f64>,
    /// How long its first event took.
    pub first_event_ms: Option<f64>,
}

/// A measured reply: what it says about the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredReply {
    /// The calls, in the order in which they began.
    pub calls: Vec<ObservedCall>,
    /// The finish reason, as sent.
    pub finish: Option<Value>,
    /// The normalized finish reason.
    pub finish_class: FinishClass,
    /// Markup that leaked into text.
    pub leaks: Vec<Leak>,
    /// Irregularities: rule, pointer, message.
    pub notes: Vec<(String, String, String)>,
    /// The model that answered, as it named itself.
    pub model: Option<String>,
    /// The tokens that it reported.
    pub usage: TokenUsage,
    /// Whether it contained text for the user.
    pub has_text: bool,
}

/// One call of a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedCall {
    /// The tool.
    pub name: String,
    /// The id, as sent.
    pub id: Option<Value>,
    /// The arguments, as sent.
    pub sent: Option<Value>,
    /// The encoding of the arguments.
    pub class: ArgumentsClass,
    /// The object that they represent, if any.
    pub value: Option<Object>,
    /// The schema violations in the arguments.
    pub faults: Vec<ArgumentFault>,
}

/// A schema error in the arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentFault {
    /// Where in the arguments.
    pub pointer: Pointer,
    /// The keyword that reports it.
    pub keyword: String,
    /// One sentence for the reader.
    pub message: String,
}
