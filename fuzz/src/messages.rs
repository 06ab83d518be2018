//! What servers and agents send: streams, JSON-RPC messages, headers, addresses.

use jiff::Timestamp;
use serde_json::value::RawValue;
use toolwarden_gateway::uri_template::matches_template;
use toolwarden_mcp::serve::ReceivedHeader;
use toolwarden_mcp::{Endpoint, ParamHeaders, RpcMessage};
use toolwarden_model::event_stream::{EventReader, EventTooLarge, ServerSentEvent};

use crate::text;

/// The largest event, small enough that inputs exceed it.
const EVENT_LIMIT: usize = 512;

/// The events of a stream do not depend on how it is cut into chunks.
pub fn event_stream(data: &[u8]) {
    let whole = events(data, data.len().max(1));
    for chunk in [1, 2, 7] {
        assert_eq!(events(data, chunk), whole, "in chunks of {chunk}");
    }
}

fn events(data: &[u8], chunk: usize) -> Result<Vec<ServerSentEvent>, EventTooLarge> {
    let mut reader = EventReader::new(EVENT_LIMIT);
    let mut events = Vec::new();
    for chunk in data.chunks(chunk) {
        events.extend(reader.feed(chunk)?);
    }
    Ok(events)
}

/// A message that is written from its parts is read as the same message.
pub fn rpc_message(data: &[u8]) {
    let Ok(messages) = RpcMessage::parse_all(data) else {
        return;
    };
    let written: Vec<String> = messages.iter().map(write_message).collect();
    for (message, written) in messages.iter().zip(&written) {
        let again = RpcMessage::parse_all(written.as_bytes());
        assert_eq!(format!("{again:?}"), format!("Ok([{message:?}])"));
    }
    let batch = format!("[{}]", written.join(", "));
    let again = RpcMessage::parse_all(batch.as_bytes());
    assert_eq!(format!("{again:?}"), format!("Ok({messages:?})"));
}

fn write_message(message: &RpcMessage) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let params = |params: &Option<Box<RawValue>>| match params {
        Some(params) => format!(r#","params":{}"#, params.get()),
        None => String::new(),
    };
    match message {
        RpcMessage::Request {
            id,
            method,
            params: sent,
        } => {
            let (id, method) = (id.get(), quoted(method));
            format!(r#"{{"id":{id},"method":{method}{}}}"#, params(sent))
        }
        RpcMessage::Notification {
            method,
            params: sent,
        } => {
            let method = quoted(method);
            format!(r#"{{"method":{method}{}}}"#, params(sent))
        }
        RpcMessage::Response {
            id,
            outcome: Ok(result),
        } => format!(r#"{{"id":{},"result":{}}}"#, id.get(), result.get()),
        RpcMessage::Response {
            id,
            outcome: Err(error),
        } => {
            let data = match &error.data {
                Some(data) => format!(r#","data":{}"#, data.get()),
                None => String::new(),
            };
            let (code, message) = (error.code, quoted(&error.message));
            let error = format!(r#"{{"code":{code},"message":{message}{data}}}"#);
            format!(r#"{{"id":{},"error":{error}}}"#, id.get())
        }
    }
}

/// The headers that a client sends for arguments pass the server's check of the same arguments.
///
/// The input is a JSON array of a definition and arguments.
pub fn param_headers(data: &[u8]) {
    let Ok([definition, arguments]) = serde_json::from_slice::<[&RawValue; 2]>(data) else {
        return;
    };
    let marks = ParamHeaders::from_definition(definition);
    let sent = marks.headers(Some(arguments));
    let names = sent.iter().map(|(name, _)| name.to_ascii_lowercase());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names.dedup();
    if names.len() < sent.len() {
        return;
    }
    let header = |name: &str| {
        let mut sent = sent.iter();
        let found = sent.find(|(sent, _)| sent.eq_ignore_ascii_case(name));
        found.map_or(ReceivedHeader::Absent, |(_, value)| {
            ReceivedHeader::Once(value)
        })
    };
    assert_eq!(marks.check(Some(arguments), header), Ok(()), "{sent:?}");
}

/// A whole number of seconds is read as that many seconds, and no text is read as a negative time.
pub fn retry_after(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    let now = Timestamp::UNIX_EPOCH;
    let found = toolwarden_http::retry_after(text, now);
    if let Ok(seconds) = text.parse::<u32>() {
        let expected = std::time::Duration::from_secs(seconds.into());
        assert_eq!(found, Some(expected));
    }
    if text.trim().starts_with('-') && text.trim().parse::<f64>().is_ok_and(|it| it < 0.0) {
        assert_eq!(found, None);
    }
    // White space around a header's value is not a part of it.
    assert_eq!(toolwarden_http::retry_after(text.trim(), now), found);
}

/// An address that is accepted passes the check that precedes a connection.
pub fn server_address(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    if let Ok(endpoint) = Endpoint::url(text) {
        assert!(endpoint.validate().is_ok(), "{text}");
    }
    if let Ok(Endpoint::Command(command)) = Endpoint::command_line(text) {
        let words = std::iter::once(&command.program).chain(&command.args);
        let quoted: Vec<String> = words.map(|word| quoted(word)).collect();
        let again = Endpoint::command_line(&quoted.join(" "));
        let again = again.map(|again| match again {
            Endpoint::Command(again) => Some((again.program, again.args)),
            Endpoint::Url(_) => None,
        });
        let expected = Some((command.program, command.args));
        assert_eq!(again.ok().flatten(), expected, "{quoted:?}");
    }
}

/// A word in single quotes of a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A template matches what it expands to. Text without an expression matches itself only.
///
/// The input is a template and a URI, on two lines.
pub fn uri_template(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    let (template, uri) = text.split_once('\n').unwrap_or((text, ""));
    let matches = matches_template(template, uri);
    match expand(template) {
        Some(expanded) => assert!(matches_template(template, &expanded), "{expanded}"),
        None => assert!(!matches, "an expression has no end"),
    }
    if !template.contains('{') {
        assert_eq!(matches, template == uri);
    }
}

/// A template with `1` for every expression; `None` if one has no end.
fn expand(template: &str) -> Option<String> {
    let mut expanded = String::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        let (_expression, after) = after.split_once('}')?;
        expanded.push_str(literal);
        expanded.push('1');
        rest = after;
    }
    expanded.push_str(rest);
    Some(expanded)
}
