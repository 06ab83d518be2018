//! Writes values as YAML that reads back the same.

use serde_json::Value;

/// Words that YAML does not read as text, in any case.
const RESERVED: &[&str] = &[
    "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n",
];

/// A value as a YAML document.
#[must_use]
pub fn write(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(members) if !members.is_empty() => block(value, 0, &mut out),
        other => {
            out.push_str(&flow(other));
            out.push('\n');
        }
    }
    out
}

fn block(value: &Value, indent: usize, out: &mut String) {
    let Value::Object(members) = value else {
        return;
    };
    for (key, value) in members {
        out.push_str(&"  ".repeat(indent));
        out.push_str(&scalar(key));
        out.push(':');
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                out.push('\n');
                block(value, indent + 1, out);
            }
            other => {
                out.push(' ');
                out.push_str(&flow(other));
                out.push('\n');
            }
        }
    }
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        // JSON is valid YAML.
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A text, quoted if YAML could read it as something else.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/')
        && text.chars().all(plain)
        && !RESERVED.contains(&text.to_ascii_lowercase().as_str());
    if is_plain {
        return text.to_owned();
    }
    Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use toolwarden_model::document::Document;

    #[test]
    fn texts_are_quoted_where_they_have_to_be() {
        let value = json!({
            "servers": {
                "a": {"command": "npx", "args": ["-y", "@x/y", "1", "no", ""], "env": {}},
                "true": {"url": "https://h/mcp", "n": 1, "deep": [{"a b": null}]},
            },
        });
        let expected = r#"servers:
  a:
    command: npx
    args: ["-y", "@x/y", "1", "no", ""]
    env: {}
  "true":
    url: "https://h/mcp"
    "n": 1
    deep: [{"a b":null}]
"#;
        assert_eq!(write(&value), expected);
        assert_eq!(write(&json!({})), "{}\n");
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::String),
            "[-:#&*!|>'\"%@`{}, \\[\\]\n\t<~a-c0-9._/e+x]{0,12}".prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 30, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                prop::collection::vec(("[-a-z0-9._/: <~]{0,6}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in any_value(), key in any::<String>()) {
            let value = json!({key: value});
            let text = write(&value);
            let read = Document::read(&text).map(|document| document.value);
            prop_assert_eq!(read, Ok(value), "{}", text);
        }
    }
}
