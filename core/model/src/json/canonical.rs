//! Canonical JSON: RFC 8785, extended so that no two different integers share a text.

use super::{Number, Object, Value};

/// The canonical text of a value.
#[must_use]
pub fn to_canonical_string(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(&mut out, value);
    out
}

/// Appends the canonical text of a value: keys sorted by UTF-16 code units, no white space, the
/// shortest escapes, numbers as ECMAScript writes them.
///
/// RFC 8785 rounds numbers to doubles, so `9007199254740993` and `9007199254740992` would become
/// equal, and `1e400` has no text at all. If no double represents a written integer, its exact
/// decimal is written instead.
pub fn write_canonical(out: &mut String, value: &Value) {
    write_value(out, value, &mut Vec::with_capacity(TYPICAL_OPEN_MEMBERS));
}

/// Appends an object in canonical form.
pub(crate) fn write_canonical_object(out: &mut String, object: &Object) {
    write_object(out, object, &mut Vec::with_capacity(TYPICAL_OPEN_MEMBERS));
}

/// The members of the objects being written, innermost last: one list is shared by all of them.
type OpenMembers<'v> = Vec<Member<'v, &'v Value>>;

/// The number of members open at a time in most schemas.
const TYPICAL_OPEN_MEMBERS: usize = 24;

/// A member to be sorted. The first bytes of its key decide most comparisons.
#[derive(Clone, Copy)]
pub(crate) struct Member<'v, T> {
    prefix: u64,
    pub(crate) key: &'v str,
    pub(crate) value: T,
}

impl<'v, T> Member<'v, T> {
    pub(crate) fn new(key: &'v str, value: T) -> Self {
        Self {
            prefix: prefix(key.as_bytes()),
            key,
            value,
        }
    }
}

/// The first eight bytes as a number that sorts like the bytes, padded with zeros.
fn prefix(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    if let (Some(first), Some(last)) = (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        // The two overlap if the key is shorter than eight bytes, and agree there.
        let last = u64::from(u32::from_be_bytes(*last)) << (8 * (8 - key.len()));
        return u64::from(u32::from_be_bytes(*first)) << 32 | last;
    }
    key.iter()
        .fold((0, 56), |(number, shift), byte| {
            (number | u64::from(*byte) << shift, shift - 8)
        })
        .0
}

fn write_value<'v>(out: &mut String, value: &'v Value, open: &mut OpenMembers<'v>) {
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
                write_value(out, item, open);
            }
            out.push(']');
        }
        Value::Object(object) => write_object(out, object, open),
    }
}

fn write_object<'v>(out: &mut String, object: &'v Object, open: &mut OpenMembers<'v>) {
    let start = open.len();
    open.extend(object.iter().map(|(key, value)| Member::new(key, value)));
    if let Some(members) = open.get_mut(start..) {
        sort_members(members);
    }
    let end = open.len();
    out.push('{');
    for at in start..end {
        let Some(&Member { key, value, .. }) = open.get(at) else {
            break;
        };
        if at > start {
            out.push(',');
        }
        write_canonical_text(out, key);
        out.push(':');
        write_value(out, value, open);
    }
    open.truncate(start);
    out.push('}');
}

/// Sorts members by the UTF-16 code units of their keys.
pub(crate) fn sort_members<T>(members: &mut [Member<'_, T>]) {
    // Byte order equals code unit order, except between surrogates and U+E000..U+FFFF.
    if members.iter().all(|member| member.key.is_ascii()) {
        members.sort_unstable_by(|a, b| a.prefix.cmp(&b.prefix).then_with(|| a.key.cmp(b.key)));
    } else {
        members.sort_unstable_by(|a, b| a.key.encode_utf16().cmp(b.key.encode_utf16()));
    }
}

/// Appends a string with the shortest escapes.
pub(crate) fn write_canonical_text(out: &mut String, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    let mut rest = text;
    while let Some(at) = next_escape(rest.as_bytes()) {
        out.push_str(rest.get(..at).unwrap_or_default());
        let byte = rest.as_bytes().get(at).copied().unwrap_or_default();
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
        rest = rest.get(at + 1..).unwrap_or_default();
    }
    out.push_str(rest);
    out.push('"');
}

/// The position of the first byte that a string must escape. Long texts are scanned in blocks that
/// the compiler vectorizes, the rest eight bytes at a time.
fn next_escape(bytes: &[u8]) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<32>();
    let plain = blocks.iter().take_while(|block| {
        !block
            .iter()
            .fold(false, |found, byte| found | needs_escape(*byte))
    });
    let skipped = plain.count();
    let bytes = if skipped == blocks.len() {
        rest
    } else {
        bytes.get(skipped * 32..)?
    };
    next_escape_nearby(bytes).map(|at| skipped * 32 + at)
}

fn next_escape_nearby(bytes: &[u8]) -> Option<usize> {
    let mut before = 0;
    if let Some(last) = bytes.last_chunk::<8>() {
        let (words, _) = bytes.as_chunks::<8>();
        let hit = words
            .iter()
            .position(|word| has_escape(u64::from_ne_bytes(*word)));
        match hit {
            Some(word) => before = word * 8,
            None if !has_escape(u64::from_ne_bytes(*last)) => return None,
            None => before = bytes.len() - 8,
        }
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let both =
            u64::from(u32::from_ne_bytes(*first)) << 32 | u64::from(u32::from_ne_bytes(*last));
        if !has_escape(both) {
            return None;
        }
    }
    let at = bytes
        .get(before..)?
        .iter()
        .position(|byte| needs_escape(*byte))?;
    Some(before + at)
}

/// No short-circuit operators: they would prevent vectorization.
const fn needs_escape(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// Whether any of eight bytes is below 0x20, a quote or a backslash. It may also return true for
/// non-ASCII bytes; the caller checks again.
fn has_escape(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    fn has_zero(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & HIGH
    }
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
    let quote = has_zero(word ^ (ONES * u64::from(b'"')));
    let backslash = has_zero(word ^ (ONES * u64::from(b'\\')));
    control | quote | backslash != 0
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
        // An exponent beyond i128 is treated as the largest one.
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
