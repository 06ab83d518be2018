use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::reply::{ArgumentsClass, FinishClass, Leak, Mode, NotMeasured, Usage, Wire};

/// Whose model was asked, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The provider.
    pub provider: String,
    /// The model that was asked for.
    pub model_id: String,
    /// How the endpoint speaks.
    pub wire: Wire,
    /// When, in RFC 3339.
    pub at: Option<String>,
}

/// One putting of one case to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The case.
    pub case: String,
    /// Whether the reply came whole or in pieces.
    pub mode: Mode,
    /// Which repetition of the case in this mode it is.
    pub repetition: u32,
    /// What came back, or why nothing that says something did.
    pub outcome: Result<Measured, NotMeasured>,
    /// How often it was tried.
    pub attempts: u32,
    /// How long the reply took as a whole.
    pub latency_ms: Option<f64>,
    /// How long its first event took.
    pub first_event_ms: Option<f64>,
}

/// What a reply says about the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The calls, in the order they were begun.
    pub calls: Vec<ObservedCall>,
    /// Why the model stopped, as sent.
    pub finish: Option<Value>,
    /// What that means.
    pub finish_class: FinishClass,
    /// Markup that came through as text.
    pub leaks: Vec<Leak>,
    /// What was odd: rule, pointer, message.
    pub notes: Vec<(String, String, String)>,
    /// The model that answered, by its own word.
    pub model: Option<String>,
    /// The tokens it says it used.
    pub usage: Usage,
    /// Whether it said something to the user.
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
    /// In which form they were sent.
    pub class: ArgumentsClass,
    /// The object they stand for, if they stand for one.
    pub value: Option<Object>,
    /// What the schema of the tool says against them.
    pub faults: Vec<Fault>,
}

/// What a schema says against arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where in the arguments.
    pub pointer: Pointer,
    /// The keyword that says so.
    pub keyword: String,
    /// What a reader should know, in a sentence.
    pub message: String,
}
