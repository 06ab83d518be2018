//! Headers that repeat single arguments of a call.
//!
//! In the stateless era a tool's input schema may mark properties with `x-mcp-header`, so that
//! proxies can route by them. A server refuses a call over HTTP without these headers.

mod marks;
mod whole;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::protocol::{PARAM_HEADER_PREFIX, decoded_header, header_value};
use crate::serve::Sent;
use marks::Mark;

/// The arguments of one tool that headers repeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParamHeaders {
    marks: Vec<Mark>,
    is_valid: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Marked {
    name: String,
    input_schema: Value,
}

impl ParamHeaders {
    /// Reads the marks in a definition.
    #[must_use]
    pub fn of(definition: &RawValue) -> Self {
        Self::named(definition)
            .map(|(_name, headers)| headers)
            .unwrap_or_default()
    }

    /// As [`Self::of`], with the name of the tool; nothing if no argument is marked.
    pub(crate) fn named(definition: &RawValue) -> Option<(String, Self)> {
        // Most definitions lack the mark, and searching text is cheaper than reading a schema.
        if !definition.get().contains(marks::KEY) {
            return None;
        }
        let tool: Marked = serde_json::from_str(definition.get()).ok()?;
        let marks = marks::collect(&tool.input_schema);
        let headers = Self {
            marks,
            is_valid: marks::are_valid(&tool.input_schema),
        };
        (!headers.is_empty()).then_some((tool.name, headers))
    }

    /// Whether no argument is marked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// The headers for a call with these arguments; absent arguments have none.
    #[must_use]
    pub fn headers(&self, arguments: Option<&RawValue>) -> Vec<(String, String)> {
        self.of_call(&self.read(arguments))
    }

    /// As [`Self::headers`], for arguments that are read already.
    pub(crate) fn of_call(&self, arguments: &Value) -> Vec<(String, String)> {
        let header = |mark: &Mark| {
            let text = rendered(mark.find(arguments)?)?;
            Some((mark.header(), header_value(&text).into_owned()))
        };
        self.marks.iter().filter_map(header).collect()
    }

    /// Checks as a server that headers and arguments agree. Headers are looked up by their names in
    /// lower case. A schema with a mark that is not allowed checks nothing, for clients send nothing.
    ///
    /// # Errors
    /// Tells the first header that disagrees.
    pub fn check<'h>(
        &self,
        arguments: Option<&RawValue>,
        header: impl Fn(&str) -> Sent<'h>,
    ) -> Result<(), String> {
        if !self.is_valid {
            return Ok(());
        }
        let arguments = self.read(arguments);
        self.marks.iter().try_for_each(|mark| {
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

fn check(mark: &Mark, arguments: &Value, sent: Sent<'_>) -> Result<(), String> {
    let refuse = |what: &str| Err(format!("{} header {what}", mark.header()));
    let argument = mark.path.join(".");
    let differs = format!("does not match the request body's `{argument}` argument");
    let value = mark.find(arguments).filter(|value| !value.is_null());
    let text = match (value, sent) {
        (_, Sent::Repeated) => return refuse("appears more than once"),
        (None, Sent::Absent) => return Ok(()),
        (None, Sent::Once(_) | Sent::Unreadable) => {
            return refuse(&format!(
                "is present but the request body's `{argument}` argument is absent"
            ));
        }
        (Some(_), Sent::Unreadable) => return refuse(&differs),
        (Some(value), Sent::Absent) if rendered(value).is_none() => return Ok(()),
        (Some(_), Sent::Absent) => {
            return refuse(&format!(
                "is missing but the request body's `{argument}` argument is present"
            ));
        }
        (Some(_), Sent::Once(text)) => text,
    };
    let Some(decoded) = decoded_header(text) else {
        return refuse("carries a malformed base64 sentinel value");
    };
    let agrees = value.is_some_and(|value| mark.agrees(value, &decoded));
    if agrees { Ok(()) } else { refuse(&differs) }
}

impl Mark {
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

    /// Whether a header says the same as an argument. Whole numbers may be written in several ways.
    fn agrees(&self, value: &Value, decoded: &str) -> bool {
        if self.is_integer
            && let Value::Number(number) = value
            && let Some(wanted) = whole::of_json(&number.to_string())
            && whole::is_decimal(decoded)
        {
            return whole::of_json(decoded).is_some_and(|sent| sent == wanted);
        }
        rendered(value).is_some_and(|text| text == decoded)
    }
}

/// A value as the text of a header; lists, objects and `null` have none.
fn rendered(value: &Value) -> Option<String> {
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

    fn marked(properties: &Value) -> ParamHeaders {
        ParamHeaders::of(&raw(
            &json!({"name": "t", "inputSchema": {"properties": properties}}),
        ))
    }

    #[test]
    fn marked_arguments_become_headers() {
        let headers = marked(&json!({
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
        assert!(marked(&json!({"a": {"type": "string"}})).is_empty());
    }

    #[test]
    fn headers_and_arguments_agree() {
        let headers = marked(&json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        }));
        let region = |sent| [sent, Sent::Absent];
        let number = |sent| [Sent::Absent, sent];
        let fail = |text: &str| Err(text.to_owned());
        let differs = "mcp-param-N header does not match the request body's `deep.n` argument";
        let eu = json!({"region": "eu"});
        let n = |number: Value| json!({"deep": {"n": number}});
        for (arguments, sent, expected) in [
            (json!({}), region(Sent::Absent), Ok(())),
            (json!({"region": null}), region(Sent::Absent), Ok(())),
            (json!({"region": ["eu"]}), region(Sent::Absent), Ok(())),
            (eu.clone(), region(Sent::Once("eu")), Ok(())),
            (eu.clone(), region(Sent::Once("=?base64?ZXU=?=")), Ok(())),
            (
                eu.clone(),
                region(Sent::Absent),
                fail(
                    "mcp-param-Region header is missing but the request body's `region` argument is present",
                ),
            ),
            (
                json!({}),
                region(Sent::Once("eu")),
                fail(
                    "mcp-param-Region header is present but the request body's `region` argument is absent",
                ),
            ),
            (
                eu.clone(),
                region(Sent::Once("us")),
                fail("mcp-param-Region header does not match the request body's `region` argument"),
            ),
            (
                json!({"region": ["eu"]}),
                region(Sent::Once("eu")),
                fail("mcp-param-Region header does not match the request body's `region` argument"),
            ),
            (
                eu.clone(),
                region(Sent::Repeated),
                fail("mcp-param-Region header appears more than once"),
            ),
            (
                eu,
                region(Sent::Once("=?base64?ZXV=?=")),
                fail("mcp-param-Region header carries a malformed base64 sentinel value"),
            ),
            (n(json!(42)), number(Sent::Once("42.0")), Ok(())),
            (n(json!(42.0)), number(Sent::Once("42")), Ok(())),
            (n(json!(42)), number(Sent::Once("42.5")), fail(differs)),
            (n(json!(42)), number(Sent::Once("4.2e1")), fail(differs)),
            (n(json!(1.5)), number(Sent::Once("1.5")), Ok(())),
            (n(json!(true)), number(Sent::Once("true")), Ok(())),
            (n(json!(42)), number(Sent::Unreadable), fail(differs)),
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
    fn marks_that_are_not_allowed_check_nothing() {
        let mark = json!({"type": "string", "x-mcp-header": "A"});
        let good = json!({"a": mark});
        assert!(marked(&good).check(None, |_| Sent::Repeated).is_err());
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
                marked(&bad).check(None, |_| Sent::Repeated),
                Ok(()),
                "{bad}"
            );
        }
        // Data and properties of these names are no schemas with a mark.
        let data = json!({"a": mark, "x-mcp-header": {"default": {"x-mcp-header": "B"}}});
        assert!(marked(&data).check(None, |_| Sent::Repeated).is_err());
    }
}
