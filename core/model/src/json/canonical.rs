//! Canonical JSON: RFC 8785, extended so that no two different integers share a text.

use std::cmp::Ordering;

use super::{Number, Value};

/// The canonical text of a value.
#[must_use]
pub fn to_canonical_string(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(&mut out, value);
    out
}

/// Appends the canonical text of a value: keys sorted by UTF-16 code units, no white space,
/// the shortest escapes, numbers as ECMAScript writes them.
///
/// RFC 8785 rounds numbers to doubles, so `9007199254740993` and `9007199254740992` would become
/// one, and `1e400` has no text at all. Where no double stands for a written integer, its exact
/// decimal is written instead.
pub fn write_canonical(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_canonical_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_canonical(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let members = map.iter().map(|(key, value)| (key.as_str(), value));
            write_canonical_members(out, members, write_canonical);
        }
    }
}

/// Appends an object with its members in canonical order.
pub(crate) fn write_canonical_members<'a, T>(
    out: &mut String,
    members: impl Iterator<Item = (&'a str, T)>,
    write: impl Fn(&mut String, T),
) {
    let mut members: Vec<(&str, T)> = members.collect();
    members.sort_unstable_by(|(a, _), (b, _)| compare_keys(a, b));
    out.push('{');
    for (at, (key, value)) in members.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_canonical_text(out, key);
        out.push(':');
        write(out, value);
    }
    out.push('}');
}

/// Orders by UTF-16 code units. This is the byte order, except that the surrogates of characters
/// beyond the BMP sort before U+E000..U+FFFF.
fn compare_keys(a: &str, b: &str) -> Ordering {
    if a.bytes().chain(b.bytes()).all(|byte| byte < 0xee) {
        return a.cmp(b);
    }
    a.encode_utf16().cmp(b.encode_utf16())
}

/// Appends a string with the shortest escapes.
pub(crate) fn write_canonical_text(out: &mut String, text: &str) {
    out.push('"');
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(text.get(plain_from..at).unwrap_or_default());
        plain_from = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            0x09 => out.push_str("\\t"),
            0x0a => out.push_str("\\n"),
            0x0c => out.push_str("\\f"),
            0x0d => out.push_str("\\r"),
            _ => {
                out.push_str("\\u00");
                out.push(char::from(b'0' + (byte >> 4)));
                out.push(char::from_digit(u32::from(byte & 0xf), 16).unwrap_or('0'));
            }
        }
    }
    out.push_str(text.get(plain_from..).unwrap_or_default());
    out.push('"');
}

fn write_number(out: &mut String, number: &Number) {
    let text = number.as_str();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let small_integer = digits.len() <= 15 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if small_integer {
        out.push_str(if digits == "0" { digits } else { text });
        return;
    }
    let exact = Decimal::of(text);
    let double = text.parse::<f64>().ok().filter(|double| double.is_finite());
    let mut buffer = ryu_js::Buffer::new();
    if let Some(shortest) = double.map(|double| buffer.format_finite(double))
        && (exact.exponent < 0 || Decimal::of(shortest) == exact)
    {
        out.push_str(shortest);
        return;
    }
    exact.write(out);
}

/// A decimal number in lowest terms: `digits` × 10^`exponent`, no zero at either end.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i128,
}

impl Decimal {
    fn of(text: &str) -> Self {
        let (negative, text) = text
            .strip_prefix('-')
            .map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = format!("{whole}{fraction}");
        // An exponent beyond i128 cannot be told apart from the largest one.
        let mut exponent = exponent
            .parse::<i128>()
            .unwrap_or(if exponent.starts_with('-') {
                i128::from(i64::MIN)
            } else {
                i128::from(i64::MAX)
            });
        exponent = exponent.saturating_sub(fraction.len() as i128);
        let significant = digits.trim_end_matches('0').len();
        exponent = exponent.saturating_add((digits.len() - significant) as i128);
        digits.truncate(significant);
        let digits = digits.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Self {
                negative: false,
                digits: "0".to_owned(),
                exponent: 0,
            };
        }
        Self {
            negative,
            digits,
            exponent,
        }
    }

    fn write(&self, out: &mut String) {
        if self.negative {
            out.push('-');
        }
        out.push_str(&self.digits);
        if self.exponent != 0 {
            out.push('e');
            out.push_str(&self.exponent.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        to_canonical_string(&parse(text).unwrap().value)
    }

    #[test]
    fn the_example_of_rfc_8785_section_3_2_3() {
        let input = r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
            "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
        assert_eq!(
            canonical(input),
            "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
             \"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}"
        );
    }

    #[test]
    fn keys_sort_by_utf16_code_units_as_in_rfc_8785_section_3_2_3() {
        let input = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh",
            "1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
        let keys: Vec<String> = serde_json::from_str::<Value>(&canonical(input))
            .unwrap()
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        assert_eq!(keys, ["\r", "1", "\u{80}", "ö", "€", "😀", "\u{fb33}"]);
    }

    #[test]
    fn numbers_follow_ecmascript_where_a_double_holds_them() {
        let cases = [
            ("0", "0"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("1.0", "1"),
            ("1e2", "100"),
            ("1E21", "1e+21"),
            ("123456789012345680000", "123456789012345680000"),
            ("1e-7", "1e-7"),
            ("0.000001", "0.000001"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("9007199254740992", "9007199254740992"),
            ("-1.50", "-1.5"),
        ];
        for (input, expected) in cases {
            assert_eq!(canonical(input), expected, "{input}");
        }
    }

    #[test]
    fn numbers_no_double_holds_keep_their_exact_value() {
        assert_eq!(canonical("9007199254740993"), "9007199254740993");
        assert_eq!(canonical("9007199254740993.0"), "9007199254740993");
        assert_eq!(canonical("1e400"), "1e400");
        assert_eq!(canonical("10e399"), "1e400");
        assert_eq!(
            canonical("-12345678901234567890123"),
            "-12345678901234567890123"
        );
    }

    proptest! {
        #[test]
        fn canonical_text_is_a_fixed_point(double in any::<f64>().prop_filter("finite", |d| d.is_finite()), text in ".*", key in ".*") {
            let input = serde_json::json!({ key: [double, text] });
            let once = to_canonical_string(&input);
            prop_assert_eq!(canonical(&once), once);
        }

        #[test]
        fn integers_never_collide(a in any::<i128>(), b in any::<i128>()) {
            prop_assert_eq!(canonical(&a.to_string()) == canonical(&b.to_string()), a == b);
        }
    }
}
