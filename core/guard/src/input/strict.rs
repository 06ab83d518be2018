//! What is refused whatever the schema says: parts that two readers would read differently.

use serde_json::Value;
use toolwarden_model::json::{MAX_DEPTH, Pointer};

use super::{Check, MAX_FAULTS, shallow};
use crate::decision::{Code, Denial, Fault, INPUT_FAILED};

/// Whether a tool can be called so: nothing is around the name that a reader may trim.
pub(crate) fn is_well_formed(name: &str) -> bool {
    let trimmed = |c: char| c.is_whitespace() || c.is_control();
    !name.starts_with(trimmed) && !name.ends_with(trimmed)
}

/// Refuses a name with white space around it: a reader that trims it would call another tool.
pub(crate) fn well_formed(name: &str) -> Result<(), Denial> {
    if is_well_formed(name) {
        return Ok(());
    }
    let reason = format!(
        "the tool name '{}' has white space or control characters around it",
        name.escape_debug()
    );
    Err(Denial::new(Code::MalformedName, reason))
}

impl Check {
    /// Refuses arguments that two readers would read differently: numbers beyond a double, and keys that
    /// differ from a declared one only in case.
    pub(crate) fn strictly(&self, arguments: &Value) -> Result<(), Denial> {
        if !shallow(arguments, MAX_DEPTH) {
            // The schema gate refuses it.
            return Ok(());
        }
        let mut faults = Vec::new();
        large_numbers(arguments, &mut Pointer::root(), &mut faults);
        refused(Code::NumberOutOfRange, faults)?;
        let Self::Schema {
            keys: Some(keys), ..
        } = self
        else {
            return Ok(());
        };
        refused(Code::KeyCase, keys.faults(arguments))
    }
}

pub(crate) fn refused(code: Code, faults: Vec<Fault>) -> Result<(), Denial> {
    let Some(first) = faults.first() else {
        return Ok(());
    };
    let mut denial = Denial::new(code, format!("{INPUT_FAILED}{}", first.message));
    denial.faults = faults;
    Err(denial)
}

/// Finds numbers that a double cannot hold: some readers make infinity of them, others zero or an error.
fn large_numbers(value: &Value, at: &mut Pointer, faults: &mut Vec<Fault>) {
    match value {
        Value::Number(number) if is_large(number.as_str()) && faults.len() < MAX_FAULTS => {
            let message = format!("the number at {at} is larger than a double can hold");
            faults.push(Fault {
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

/// Whether a value is worth looking into, told without its place.
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
