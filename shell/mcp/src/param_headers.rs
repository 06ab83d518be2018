//! Headers that repeat single arguments of a call.
//!
//! In the stateless era a tool's input schema may mark properties with `x-mcp-header`, so that
//! proxies can route by them. Over HTTP, a server refuses a call without these headers.

mod annotations;
mod integer_text;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::protocol::{PARAM_HEADER_PREFIX, decode_header, encode_header};
use crate::serve::ReceivedHeader;
use annotations::HeaderParam;

/// The arguments of one tool that are repeated in headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParamHeaders {
    params: Vec<HeaderParam>,
    is_valid: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnnotatedTool {
    name: String,
    input_schema: Value,
}

impl ParamHeaders {
    /// Reads the marks in a definition.
    #[must_use]
    pub fn from_definition(definition: &RawValue) -> Self {
        Self::from_definition_with_name(definition)
            .map(|(_name, headers)| headers)
            .unwrap_or_default()
    }

    /// Like [`Self::from_definition`], with the name of the tool; `None` if no argument is marked.
    pub(crate) fn from_definition_with_name(definition: &RawValue) -> Option<(String, Self)> {
        // Most definitions lack the mark, and searching text is cheaper than reading a schema.
        if !definition.get().contains(annotations::ANNOTATION_KEY) {
            return None;
        }
        let tool: AnnotatedTool = serde_json::from_str(definition.get()).ok()?;
        let marks = annotations::collect_params(&tool.input_schema);
        let headers = Self {
            params: marks,
            is_valid: annotations::are_annotations_valid(&tool.input_schema),
        };
        (!headers.is_empty()).then_some((tool.name, headers))
    }

    /// Whether no argument is marked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }

    /// The headers for a call with these arguments; absent arguments have none.
    #[must_use]
    pub fn headers(&self, arguments: Option<&RawValue>) -> Vec<(String, String)> {
        self.for_arguments(&self.read(arguments))
    }

    /// Like [`Self::headers`], for arguments that are already parsed.
    pub(crate) fn for_arguments(&self, arguments: &Value) -> Vec<(String, String)> {
        let header = |mark: &HeaderParam| {
            let text = header_text(mark.find(arguments)?)?;
            Some((mark.header(), encode_header(&text).into_owned()))
        };
        self.params.iter().filter_map(header).collect()
    }

    /// Checks, as a server, that headers and arguments agree. Headers are looked up by their
    /// lowercase names. A schema with an invalid mark checks nothing, because clients send nothing
    /// for it.
    ///
    /// # Errors
    /// Names the first header that disagrees.
    pub fn check<'h>(
        &self,
        arguments: Option<&RawValue>,
        header: impl Fn(&str) -> ReceivedHeader<'h>,
    ) -> Result<(), String> {
        if !self.is_valid {
            return Ok(());
        }
        let arguments = self.read(arguments);
        self.params.iter().try_for_each(|mark| {
            let name = mark.header().to_ascii_lowercase();
            check(mark, &arguments, header(&name))
        })
    }

    fn read(&self, arguments: Option<&RawValue>) -> Value {
        arguments
            .filter(|_| !self.is_empty())
            .and_then(|arguments| serde_json::from_str(arguments.get()).ok())
            .unwrap_or_default()
    }
}

fn check(mark: &HeaderParam, arguments: &Value, sent: ReceivedHeader<'_>) -> Result<(), String> {
    let refuse = |what: &str| Err(format!("{} header {what}", mark.header()));
    let argument = mark.path.join(".");
    let differs = format!("does not match the request body's `{argument}` argument");
    let value = mark.find(arguments).filter(|value| !value.is_null());
    let text = match (value, sent) {
        (_, ReceivedHeader::Repeated) => return refuse("appears more than once"),
        (None, ReceivedHeader::Absent) => return Ok(()),
        (None, ReceivedHeader::Once(_) | ReceivedHeader::Unreadable) => {
            return refuse(&format!(
                "is present but the request body's `{argument}` argument is absent"
            ));
        }
        (Some(_), ReceivedHeader::Unreadable) => return refuse(&differs),
        (Some(value), ReceivedHeader::Absent) if header_text(value).is_none() => return Ok(()),
        (Some(_), ReceivedHeader::Absent) => {
            return refuse(&format!(
                "is missing but the request body's `{argument}` argument is present"
            ));
        }
        (Some(_), ReceivedHeader::Once(text)) => text,
    };
    let Some(decoded) = decode_header(text) else {
        return refuse("carries a malformed base64 sentinel value");
    };
    let agrees = value.is_some_and(|value| mark.matches_header(value, &decoded));
    if agrees { Ok(()) } else { refuse(&differs) }
}

impl HeaderParam {
    fn header(&self) -> String {
        format!("{PARAM_HEADER_PREFIX}{}", self.name)
    }

    fn find<'v>(&self, arguments: &'v Value) -> Option<&'v Value> {
        let mut value = arguments;
        for key in &self.path {
            value = value.get(key)?;
        }
        Some(value)
    }

    /// Whether a header matches an argument. Integers may be written in several ways.
    fn matches_header(&self, value: &Value, decoded: &str) -> bool {
        if self.is_integer
            && let Value::Number(number) = value
            && let Some(wanted) = integer_text::parse_json_integer(&number.to_string())
            && integer_text::is_decimal(decoded)
        {
            return integer_text::parse_json_integer(decoded).is_some_and(|sent| sent == wanted);
        }
        header_text(value).is_some_and(|text| text == decoded)
    }
}

/// A value as header text; lists, objects and `null` have none.
fn header_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn raw(value: &Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    fn param_headers(properties: &Value) -> ParamHeaders {
        ParamHeaders::from_definition(&raw(
            &json!({"name": "t", "inputSchema": {"properties": properties}}),
        ))
    }

    #[test]
    fn marked_arguments_become_headers() {
        let headers = param_headers(&json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "list": {"items": {"x-mcp-header": "Ignored"}},
            "gone": {"x-mcp-header": "Gone"},
        }));
        let arguments = json!({"region": "größe", "deep": {"n": 3}, "list": ["x"]});
        assert_eq!(
            headers.headers(Some(&raw(&arguments))),
            [
                (
                    "mcp-param-Region".to_owned(),
                    "=?base64?Z3LDtsOfZQ==?=".to_owned()
                ),
                ("mcp-param-N".to_owned(), "3".to_owned()),
            ]
        );
        assert_eq!(headers.headers(None), []);
        assert!(param_headers(&json!({"a": {"type": "string"}})).is_empty());
    }

    #[test]
    fn headers_and_arguments_agree() {
        let headers = param_headers(&json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        }));
        let region = |sent| [sent, ReceivedHeader::Absent];
        let number = |sent| [ReceivedHeader::Absent, sent];
        let fail = |text: &str| Err(text.to_owned());
        let differs = "mcp-param-N header does not match the request body's `deep.n` argument";
        let eu = json!({"region": "eu"});
        let n = |number: Value| json!({"deep": {"n": number}});
        for (arguments, sent, expected) in [
            (json!({}), region(ReceivedHeader::Absent), Ok(())),
            (
                json!({"region": null}),
                region(ReceivedHeader::Absent),
                Ok(()),
            ),
            (
                json!({"region": ["eu"]}),
                region(ReceivedHeader::Absent),
                Ok(()),
            ),
            (eu.clone(), region(ReceivedHeader::Once("eu")), Ok(())),
            (
                eu.clone(),
                region(ReceivedHeader::Once("=?base64?ZXU=?=")),
                Ok(()),
            ),
            (
                eu.clone(),
                region(ReceivedHeader::Absent),
                fail(
                    "mcp-param-Region header is missing but the request body's `region` argument is present",
                ),
            ),
            (
                json!({}),
                region(ReceivedHeader::Once("eu")),
                fail(
                    "mcp-param-Region header is present but the request body's `region` argument is absent",
                ),
            ),
            (
                eu.clone(),
                region(ReceivedHeader::Once("us")),
                fail("mcp-param-Region header does not match the request body's `region` argument"),
            ),
            (
                json!({"region": ["eu"]}),
                region(ReceivedHeader::Once("eu")),
                fail("mcp-param-Region header does not match the request body's `region` argument"),
            ),
            (
                eu.clone(),
                region(ReceivedHeader::Repeated),
                fail("mcp-param-Region header appears more than once"),
            ),
            (
                eu,
                region(ReceivedHeader::Once("=?base64?ZXV=?=")),
                fail("mcp-param-Region header carries a malformed base64 sentinel value"),
            ),
            (n(json!(42)), number(ReceivedHeader::Once("42.0")), Ok(())),
            (n(json!(42.0)), number(ReceivedHeader::Once("42")), Ok(())),
            (
                n(json!(42)),
                number(ReceivedHeader::Once("42.5")),
                fail(differs),
            ),
            (
                n(json!(42)),
                number(ReceivedHeader::Once("4.2e1")),
                fail(differs),
            ),
            (n(json!(1.5)), number(ReceivedHeader::Once("1.5")), Ok(())),
            (n(json!(true)), number(ReceivedHeader::Once("true")), Ok(())),
            (
                n(json!(42)),
                number(ReceivedHeader::Unreadable),
                fail(differs),
            ),
        ] {
            let lookup = |name: &str| match name {
                "mcp-param-region" => sent[0],
                "mcp-param-n" => sent[1],
                other => panic!("{other}"),
            };
            assert_eq!(
                headers.check(Some(&raw(&arguments)), lookup),
                expected,
                "{arguments} {sent:?}"
            );
        }
    }

    #[test]
    fn invalid_annotations_check_nothing() {
        let mark = json!({"type": "string", "x-mcp-header": "A"});
        let good = json!({"a": mark});
        assert!(
            param_headers(&good)
                .check(None, |_| ReceivedHeader::Repeated)
                .is_err()
        );
        for bad in [
            json!({"a": mark, "b": {"type": "array", "items": mark}}),
            json!({"a": mark, "b": {"type": "string", "x-mcp-header": "a"}}),
            json!({"a": mark, "b": {"type": "string", "x-mcp-header": "no token"}}),
            json!({"a": mark, "b": {"type": "string", "x-mcp-header": ""}}),
            json!({"a": mark, "b": {"type": "number", "x-mcp-header": "B"}}),
            json!({"a": mark, "b": {"x-mcp-header": "B"}}),
            json!({"a": mark, "b": {"type": "string", "x-mcp-header": 7}}),
            json!({"a": mark, "b": {"anyOf": [{"type": "string", "x-mcp-header": "B"}]}}),
            json!({"a": mark, "b": {"$defs": {"c": {"properties": {"d": mark}}}}}),
        ] {
            assert_eq!(
                param_headers(&bad).check(None, |_| ReceivedHeader::Repeated),
                Ok(()),
                "{bad}"
            );
        }
        // Data and properties with these names are not schemas with a mark.
        let data = json!({"a": mark, "x-mcp-header": {"default": {"x-mcp-header": "B"}}});
        assert!(
            param_headers(&data)
                .check(None, |_| ReceivedHeader::Repeated)
                .is_err()
        );
    }
}
