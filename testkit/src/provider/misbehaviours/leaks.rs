use serde_json::json;

use super::Misbehaviour;
use super::chat_messages::both;

/// Calls in the markup of a model's own template, as text.
pub(super) fn all() -> Vec<Misbehaviour> {
    [
        (
            "chat-leak-dsml",
            "a call of DeepSeek as text",
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n\
             <｜DSML｜parameter name=\"location\">Paris</｜DSML｜parameter>\n\
             </｜DSML｜invoke>\n</｜DSML｜function_calls>",
        ),
        (
            "chat-leak-kimi",
            "a call of Kimi as text",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0\
             <|tool_call_argument_begin|>{\"location\":\"Paris\"}<|tool_call_end|>",
        ),
        (
            "chat-leak-qwen",
            "a call of Qwen as text",
            "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}\n\
             </tool_call>",
        ),
        (
            "chat-leak-minimax",
            "a call of MiniMax as text",
            "<minimax:tool_call>\n<invoke name=\"get_weather\">\n\
             <parameter name=\"location\">Paris</parameter>\n</invoke>\n</minimax:tool_call>",
        ),
        (
            "chat-leak-mistral",
            "a call of Mistral as text",
            "[TOOL_CALLS]get_weather{\"location\": \"Paris\"}",
        ),
        (
            "chat-leak-llama",
            "a call of Llama as text",
            "<|python_tag|>{\"name\": \"get_weather\", \"parameters\": {\"location\": \"Paris\"}}",
        ),
        (
            "chat-leak-doubao",
            "a call of Doubao as text",
            "<|FunctionCallBegin|>[{\"name\": \"get_weather\", \"parameters\": {\"location\": \"Paris\"}}]\
             <|FunctionCallEnd|>",
        ),
        (
            "chat-leak-harmony",
            "a harmony channel as text",
            "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>\
             {\"location\":\"Paris\"}<|call|>",
        ),
        (
            "chat-leak-harmony-bare",
            "a harmony channel without its tokens",
            "assistantcommentary to=functions.get_weather json{\"location\":\"Paris\"}",
        ),
        (
            "chat-leak-react",
            "a call as a ReAct step",
            "Thought: I need the weather.\nAction: get_weather\nAction Input: {\"location\": \"Paris\"}",
        ),
        (
            "chat-leak-tool-code",
            "a call as `tool_code`",
            "```tool_code\nprint(get_weather(location=\"Paris\"))\n```",
        ),
        (
            "chat-leak-python",
            "a call as Python",
            "[get_weather(location=\"Paris\", unit=\"celsius\")]",
        ),
        (
            "chat-leak-plugin",
            "a call of InternLM as text",
            "<|action_start|><|plugin|>\n{\"name\": \"get_weather\", \"parameters\": {\"location\": \"Paris\"}}<|action_end|>",
        ),
        (
            "chat-leak-glm-bare",
            "a call of GLM-4 without markup",
            "get_weather\n{\"location\": \"Paris\"}",
        ),
        (
            "chat-leak-json",
            "a call as JSON in a code fence",
            "```json\n{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}\n```",
        ),
        (
            "chat-leak-thinking",
            "reasoning as text",
            "<think>The user wants the weather.</think>It is sunny.",
        ),
    ]
    .into_iter()
    .map(|(id, what, text)| {
        let message = json!({"role": "assistant", "content": text});
        both(id, what, &message, &json!("stop"))
    })
    .collect()
}
