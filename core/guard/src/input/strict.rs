//! Input that is denied regardless of the schema: parts that two parsers would read differently.

use serde_json::Value;
use toolwarden_model::json::{MAX_DEPTH, Pointer};

use super::{MAX_FAULTS, SchemaCheck, is_shallow};
use crate::decision::{Denial, INPUT_FAILED, ReasonCode, ValueFault};

/// Whether this is a possible tool name: it has no surrounding characters that a parser may trim.
pub(crate) fn is_well_formed(name: &str) -> bool {
    let trimmed = |c: char| c.is_whitespace() || c.is_control();
    !name.starts_with(trimmed) && !name.ends_with(trimmed)
}

/// Denies a name with surrounding white space: a parser that trims it would call another tool.
pub(crate) fn check_tool_name(name: &str) -> Result<(), Denial> {
    if is_well_formed(name) {
        return Ok(());
    }
    let reason = format!(
        "the tool name '{}' has white space or control characters around it",
        name.escape_debug()
    );
    Err(Denial::new(ReasonCode::MalformedName, reason))
}

impl SchemaCheck {
    /// Denies arguments that two parsers would read differently: numbers beyond a double, and keys that
    /// differ from a declared one only in case.
    pub(crate) fn check_strict(&self, arguments: &Value) -> Result<(), Denial> {
        if !is_shallow(arguments, MAX_DEPTH) {
            // The input gate denies it.
            return Ok(());
        }
        let mut faults = Vec::new();
        large_numbers(arguments, &mut Pointer::root(), &mut faults);
        deny_faults(ReasonCode::NumberOutOfRange, faults)?;
        let Self::Schema {
            keys: Some(keys), ..
        } = self
        else {
            return Ok(());
        };
        deny_faults(ReasonCode::KeyCase, keys.faults(arguments))
    }
}

pub(crate) fn deny_faults(code: ReasonCode, faults: Vec<ValueFault>) -> Result<(), Denial> {
    let Some(first) = faults.first() else {
        return Ok(());
    };
    let mut denial = Denial::new(code, format!("{INPUT_FAILED}{}", first.message));
    denial.faults = faults;
    Err(denial)
}

/// Finds numbers that a double cannot hold: some parsers turn them into infinity, others into zero or an
/// error.
fn large_numbers(value: &Value, at: &mut Pointer, faults: &mut Vec<ValueFault>) {
    match value {
        Value::Number(number) if is_large(number.as_str()) && faults.len() < MAX_FAULTS => {
            let message = format!("the number at {at} is larger than a double can hold");
            faults.push(ValueFault {
                pointer: at.clone(),
                masked: message.clone(),
                message,
            });
        }
        Value::Array(items) => {
            for (index, item) in items
                .iter()
                .enumerate()
                .filter(|(_, it)| may_have_large(it))
            {
                at.push(&index.to_string());
                large_numbers(item, at, faults);
                at.pop();
            }
        }
        Value::Object(members) => {
            for (key, item) in members.iter().filter(|(_, it)| may_have_large(it)) {
                at.push(key);
                large_numbers(item, at, faults);
                at.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Number(_) => {}
    }
}

/// A fast test, without pointers, of whether a value may contain such a number.
fn may_have_large(value: &Value) -> bool {
    match value {
        Value::Number(number) => is_large(number.as_str()),
        Value::Array(_) | Value::Object(_) => true,
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

fn is_large(number: &str) -> bool {
    // The largest double has 309 digits.
    let may_be = number.len() > 300 || number.contains(['e', 'E']);
    may_be && number.parse().is_ok_and(f64::is_infinite)
}
