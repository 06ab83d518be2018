/// A rule that a note on a reply refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoteRule {
    /// The stable id, in kebab case.
    pub id: &'static str,
    /// What it means.
    pub description: &'static str,
}

macro_rules! rules {
    ($($name:ident = $id:literal, $description:literal;)+) => {
        $(pub(super) const $name: NoteRule = NoteRule { id: $id, description: $description };)+

        /// Every rule, in the order of a reply: transport, content, finish.
        pub const RULES: &[NoteRule] = &[$($name,)+];
    };
}

rules! {
    STREAM_FOR_JSON = "stream-for-json", "Events came where one JSON document was asked for; they were assembled.";
    JSON_FOR_STREAM = "json-for-stream", "One JSON document came where events were asked for.";
    ARRAY_STREAM = "array-stream", "The chunks of a stream came as one JSON array instead of events.";
    UNTERMINATED_EVENT = "unterminated-event", "The last event lacks the empty line that ends it; it was read.";
    EVENTS_AFTER_DONE = "events-after-done", "Events follow the one that says the stream is done; they were ignored.";
    MISSING_DONE = "missing-done", "The stream has a finish reason but no final event that ends it.";
    MESSAGE_IN_CHUNK = "message-in-chunk", "A chunk has a whole message; it was read if there were no pieces before.";
    USAGE_ON_CONTENT_CHUNK = "usage-on-content-chunk", "The usage is in a chunk with content instead of in a separate chunk.";
    USAGE_REPEATED = "usage-repeated", "Several chunks report the usage; the last counts.";
    USAGE_MISSING = "usage-missing", "The reply does not report how many tokens were used.";
    MISSING_INDEX = "missing-index", "A piece of a call has no index; it was identified by its id, its name or its position.";
    REUSED_INDEX = "reused-index", "Several calls share one index; they were distinguished by id or name.";
    EMPTY_ID = "empty-id", "A piece of a call has an empty id; it counts as none.";
    REPEATED_NAME = "repeated-name", "A later piece of a call repeats its name.";
    ARGUMENTS_BEFORE_NAME = "arguments-before-name", "Arguments came before the name of the call.";
    UNSTREAMED_ARGUMENTS = "unstreamed-arguments", "The arguments of every call came in one piece, with its name, though a stream was asked for.";
    MERGED_OBJECTS = "merged-objects", "The arguments came as several objects; they were merged.";
    ORPHAN_DELTA = "orphan-delta", "A piece belongs to no item that was started; it was ignored.";
    UNCLOSED_BLOCK = "unclosed-block", "A block of content was never closed.";
    INVALID_PARTIAL_JSON = "invalid-partial-json", "The pieces of the arguments do not form valid JSON; the text was kept.";
    STREAM_DISAGREES = "stream-disagrees", "The pieces of the arguments are not what the last event says they are; the last counts.";
    SEVERAL_CHOICES = "several-choices", "There is more than one choice; the first was read.";
    MALFORMED_TOOL_CALLS = "malformed-tool-calls", "An entry in the list of calls is not a call; it was left out.";
    MALFORMED_CONTENT = "malformed-content", "What the model said is of a type the wire does not have; it was left out.";
    CONTENT_PARTS = "content-parts", "What the model said is a list of parts instead of a text; the texts were joined.";
    UNKNOWN_PART = "unknown-part", "A part of the reply has a kind that is not read.";
    LEGACY_FUNCTION_CALL = "legacy-function-call", "The call is in `function_call`, which `tool_calls` replaced.";
    CUSTOM_CALL = "custom-call", "The call is of a tool that takes text instead of arguments.";
    INPUT_NOT_OBJECT = "input-not-object", "The arguments are not an object on a wire that sends objects.";
    PARTIAL_ARGUMENTS = "partial-arguments", "The arguments came in pieces by path, which are not assembled.";
    REFUSAL_TEXT = "refusal-text", "The model declined in a member of its own; it was read as text.";
    LEAKED_CALL = "leaked-call", "Markup of a call came through as text.";
    LEAKED_REASONING = "leaked-reasoning", "Markup of the reasoning came through as text.";
    MARKUP_IN_REASONING = "markup-in-reasoning", "Markup of the model's template is in the reasoning.";
    MARKUP_IN_ARGUMENTS = "markup-in-arguments", "Markup of the model's template is in the arguments of a call.";
    REASONING_ONLY = "reasoning-only", "There is reasoning, but neither text nor a call.";
    EMPTY_REPLY = "empty-reply", "There is neither text nor reasoning nor a call.";
    FINISH_OUTSIDE_CHOICE = "finish-outside-choice", "The finish reason is beside the choices instead of inside one.";
    FINISH_CHANGED = "finish-changed", "Several chunks give different finish reasons; the last counts.";
    MISSING_FINISH = "missing-finish", "The reply does not say why the model stopped.";
    UNUSUAL_FINISH = "unusual-finish", "The finish reason is not one that the wire defines.";
    FINISH_WITHOUT_CALLS = "finish-without-calls", "The finish reason announces calls, but the reply has none.";
    CALLS_WITHOUT_FINISH = "calls-without-finish", "The reply has calls, but the finish reason does not announce them.";
    CUT_BY_LENGTH = "cut-by-length", "The tokens ran out in a reply with calls.";
    FAILED_CALL = "failed-call", "The provider reports that it accepted no call from the model.";
}
