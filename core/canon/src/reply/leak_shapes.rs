//! Calls that a model writes as text without the markup of a template.

use toolwarden_model::json;

/// The family and the recognized form of a call in a text, if the text is one.
///
/// Each form is strict: prose that mentions a tool, or code that a user asked for, is not a call.
pub(super) fn text_call(text: &str) -> Option<(&'static str, &'static str)> {
    let text = text.trim();
    if text.contains("to=functions.") && text.contains('{') {
        return Some(("harmony", "to=functions."));
    }
    if is_react_step(text) {
        return Some(("react", "Action: …"));
    }
    if text.contains("```tool_code") || text.contains("<tool_code>") {
        return Some(("tool-code", "```tool_code"));
    }
    if is_python_call(unfenced(text)) {
        return Some(("python-call", "name(argument=…)"));
    }
    is_bare_call(text).then_some(("glm-bare", "name\\n{…}"))
}

/// `Action:` with the name of a tool, and `Action Input:` after it, each on a line of its own.
fn is_react_step(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let named = |line: &str| {
        let name = line.strip_prefix("Action:").map(str::trim);
        name.is_some_and(is_name)
    };
    lines.any(named) && lines.any(|line| line.starts_with("Action Input:"))
}

/// The inside of a code fence for Python that is the whole text.
fn unfenced(text: &str) -> &str {
    let inside = text
        .strip_prefix("```python")
        .and_then(|it| it.strip_suffix("```"));
    inside.map_or(text, str::trim)
}

/// A call with keyword arguments, or a list of calls, as the whole text.
fn is_python_call(text: &str) -> bool {
    let listed = text
        .strip_prefix('[')
        .and_then(|it| it.strip_suffix(']'))
        .map(str::trim);
    let call = listed.unwrap_or(text);
    let Some((name, rest)) = call.split_once('(') else {
        return false;
    };
    let Some(arguments) = rest.strip_suffix(')') else {
        return false;
    };
    let keyword = arguments.split_once('=').map(|(key, _)| key.trim());
    let has_keyword = keyword.is_some_and(is_name);
    let is_empty = listed.is_some() && arguments.trim().is_empty();
    is_name(name.trim()) && (has_keyword || is_empty)
}

/// A name on the first line and a JSON object below it, as the whole text.
fn is_bare_call(text: &str) -> bool {
    let Some((name, arguments)) = text.split_once('\n') else {
        return false;
    };
    let arguments = arguments.trim();
    is_name(name.trim())
        && arguments.starts_with('{')
        && json::parse(arguments).is_ok_and(|it| it.value.is_object())
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    let first = letters.next();
    first.is_some_and(|it| it.is_ascii_alphabetic() || it == '_')
        && letters.all(|it| it.is_ascii_alphanumeric() || "_-.".contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_as_text_are_told_from_prose_and_code() {
        let family = |text: &str| text_call(text).map(|(family, _)| family);
        for (text, expected) in [
            (
                "assistantcommentary to=functions.get_weather json{\"location\":\"Paris\"}",
                "harmony",
            ),
            (
                "Thought: ask.\nAction: get_weather\nAction Input: {\"location\": \"Paris\"}",
                "react",
            ),
            (
                "```tool_code\nprint(get_weather(location=\"Paris\"))\n```",
                "tool-code",
            ),
            (
                "[get_weather(location=\"Paris\"), get_time()]",
                "python-call",
            ),
            ("get_weather(location=\"Paris\")", "python-call"),
            (
                "```python\nget_weather(location=\"Paris\")\n```",
                "python-call",
            ),
            ("[get_time()]", "python-call"),
            ("get_weather\n{\"location\": \"Paris\"}", "glm-bare"),
        ] {
            assert_eq!(family(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "It is sunny in Paris.",
            "I would call get_weather(location=\"Paris\") for this.",
            "Action: none is needed.",
            "Action: get_weather",
            "print(\"hello\")",
            "f(x)",
            "Here is the weather:\n{\"sky\": \"clear\"}",
            "Paris\n{not json}",
            "The list is [a, b].",
        ] {
            assert_eq!(family(text), None, "{text}");
        }
    }
}
