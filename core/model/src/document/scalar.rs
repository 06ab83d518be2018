//! What an unquoted scalar means in the core schema of YAML 1.2.

use crate::json::{Number, Value};

use super::DocumentErrorKind;

/// An unquoted scalar; numbers are in JSON's spelling.
pub(super) enum PlainScalar {
    Null,
    Bool(bool),
    Int(String),
    Float(String),
    Text,
}

impl PlainScalar {
    pub(super) fn into_value(self, text: String) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(number) | Self::Float(number) => {
                Value::Number(Number::from_string_unchecked(number))
            }
            Self::Text => Value::String(text),
        }
    }
}

/// Determines the type of an unquoted scalar.
pub(super) fn parse_plain_scalar(text: &str) -> Result<PlainScalar, DocumentErrorKind> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(PlainScalar::Null),
        "true" | "True" | "TRUE" => return Ok(PlainScalar::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(PlainScalar::Bool(false)),
        _ => {}
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return parse_radix(digits, radix);
        }
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned {
        ".inf" | ".Inf" | ".INF" => return Err(DocumentErrorKind::NotFinite),
        ".nan" | ".NaN" | ".NAN" if unsigned == text => return Err(DocumentErrorKind::NotFinite),
        _ => {}
    }
    Ok(parse_decimal(unsigned, text.starts_with('-')).unwrap_or(PlainScalar::Text))
}

/// Whether a number is written with an exponent, which a hexadecimal `e` is not.
pub(super) fn has_exponent(number: &str) -> bool {
    !number.starts_with("0x") && number.contains(['e', 'E'])
}

fn parse_radix(digits: &str, radix: u32) -> Result<PlainScalar, DocumentErrorKind> {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Ok(PlainScalar::Text);
    }
    u128::from_str_radix(digits, radix)
        .map(|number| PlainScalar::Int(number.to_string()))
        .map_err(|_| DocumentErrorKind::NumberTooLarge)
}

/// A decimal number; its text is changed only where JSON would not allow it: `+1`, `007`, `.5`,
/// `1.`.
fn parse_decimal(unsigned: &str, negative: bool) -> Option<PlainScalar> {
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => unsigned.split_at(at),
        None => (unsigned, ""),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    if !all_digits(whole) || !fraction.is_none_or(all_digits) || !is_exponent(exponent) {
        return None;
    }
    if whole.is_empty() && fraction.is_none_or(str::is_empty) {
        return None;
    }
    let mut number = String::with_capacity(unsigned.len() + 2);
    if negative {
        number.push('-');
    }
    let significant = whole.trim_start_matches('0');
    number.push_str(if significant.is_empty() {
        "0"
    } else {
        significant
    });
    if let Some(fraction) = fraction {
        number.push('.');
        number.push_str(if fraction.is_empty() { "0" } else { fraction });
    }
    number.push_str(exponent);
    Some(match fraction.is_none() && exponent.is_empty() {
        true => PlainScalar::Int(number),
        false => PlainScalar::Float(number),
    })
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the text is empty, or `e` with an optional sign and digits.
fn is_exponent(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(['e', 'E']) else {
        return text.is_empty();
    };
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    !digits.is_empty() && all_digits(digits)
}
