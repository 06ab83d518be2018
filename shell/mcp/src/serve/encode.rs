//! Messages as text, assembled from parts that are already JSON.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::rpc_message::RpcError;

/// The bytes of a message besides its parts.
const MESSAGE_OVERHEAD: usize = 64;

/// The response with a result or an error.
#[must_use]
pub fn response(id: &RawValue, outcome: Result<&RawValue, &RpcError>) -> String {
    match outcome {
        Ok(result) => result_response(id, result.get()),
        Err(error) => error_response(id, error),
    }
}

/// The response with an empty object as the result.
#[must_use]
pub fn empty_result(id: &RawValue) -> String {
    result_response(id, "{}")
}

/// A notification.
#[must_use]
pub fn notification(method: &str, params: Option<&RawValue>) -> String {
    let mut text = with_capacity(method.len() + length(params));
    text.push_str(r#"{"jsonrpc":"2.0","method":"#);
    finish_message(text, method, params)
}

/// A request. The id is a JSON text: a number or a string in quotes.
#[must_use]
pub fn request(id: &str, method: &str, params: Option<&RawValue>) -> String {
    let mut text = with_capacity(id.len() + method.len() + length(params));
    text.push_str(r#"{"jsonrpc":"2.0","id":"#);
    text.push_str(id);
    text.push_str(r#","method":"#);
    finish_message(text, method, params)
}

/// The message on one line, as the stdio transport requires. Line breaks in JSON are only ever
/// white space.
#[must_use]
pub fn on_one_line(text: String) -> String {
    if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_none() {
        return text;
    }
    text.replace(['\n', '\r'], " ")
}

/// The response with the text of a result.
#[must_use]
pub fn result_response(id: &RawValue, result: &str) -> String {
    let mut text = with_capacity(id.get().len() + result.len());
    text.push_str(r#"{"jsonrpc":"2.0","id":"#);
    text.push_str(id.get());
    text.push_str(r#","result":"#);
    text.push_str(result);
    text.push('}');
    text
}

fn error_response(id: &RawValue, error: &RpcError) -> String {
    let RpcError {
        code,
        message,
        data,
    } = error;
    let room = id.get().len() + message.len() + length(data.as_deref());
    let mut text = with_capacity(room + MESSAGE_OVERHEAD);
    text.push_str(r#"{"jsonrpc":"2.0","#);
    // The protocol's schemas do not allow `null` here: an error that belongs to no request has no
    // id.
    if id.get() != "null" {
        text.push_str(r#""id":"#);
        text.push_str(id.get());
        text.push(',');
    }
    // Writing to a string cannot fail.
    let _written = write!(text, r#""error":{{"code":{code},"message":"#);
    push_string(&mut text, message);
    if let Some(data) = data {
        text.push_str(r#","data":"#);
        text.push_str(data.get());
    }
    text.push_str("}}");
    text
}

fn finish_message(mut text: String, method: &str, params: Option<&RawValue>) -> String {
    push_string(&mut text, method);
    if let Some(params) = params {
        text.push_str(r#","params":"#);
        text.push_str(params.get());
    }
    text.push('}');
    text
}

fn push_string(text: &mut String, part: &str) {
    let is_plain = part
        .bytes()
        .all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    if is_plain {
        text.push('"');
        text.push_str(part);
        text.push('"');
    } else {
        text.push_str(&Value::from(part).to_string());
    }
}

fn with_capacity(parts: usize) -> String {
    String::with_capacity(parts + MESSAGE_OVERHEAD)
}

fn length(part: Option<&RawValue>) -> usize {
    part.map_or(0, |part| part.get().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn parts_stay_as_they_were_written() {
        let id = raw(r#""a\u0041""#);
        let result = raw(r#"{ "b":1.0e0, "a" : [1.00]}"#);
        assert_eq!(
            response(&id, Ok(&result)),
            r#"{"jsonrpc":"2.0","id":"a\u0041","result":{ "b":1.0e0, "a" : [1.00]}}"#
        );
        let error = RpcError {
            code: -32602,
            message: "a \"b\"\n".to_owned(),
            data: Some(raw("[ 1.0 ]")),
        };
        assert_eq!(
            response(&id, Err(&error)),
            r#"{"jsonrpc":"2.0","id":"a\u0041","error":{"code":-32602,"message":"a \"b\"\n","data":[ 1.0 ]}}"#
        );
        assert_eq!(
            empty_result(&raw("7")),
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#
        );
        assert_eq!(
            request("7", "tools/call", Some(&raw(r#"{ "name":"x"}"#))),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{ "name":"x"}}"#
        );
        assert_eq!(
            notification("a\"b", None),
            r#"{"jsonrpc":"2.0","method":"a\"b"}"#
        );
    }

    #[test]
    fn one_allocation_is_enough() {
        let params = raw(&format!("[{}]", "1,".repeat(500) + "1"));
        let text = request("12345", "tools/call", Some(&params));
        assert!(text.capacity() <= params.get().len() + 5 + 10 + MESSAGE_OVERHEAD);
    }

    #[test]
    fn lines_are_single() {
        assert_eq!(
            on_one_line("{\r\n \"a\": \"x\\n\"\n}".to_owned()),
            "{   \"a\": \"x\\n\" }"
        );
    }
}
