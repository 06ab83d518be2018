//! Conditions: small CEL expressions that decide whether a group is active right now.

mod attributes;
mod check;
mod condition_context;

use std::collections::BTreeMap;

use cel::ExecutionError;
use cel::objects::ValueType;
use cel::parser::{Expression, PrattParser};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use thiserror::Error;
use toolwarden_model::did_you_mean;
use toolwarden_model::json::{Position, Value};

pub use condition_context::ConditionContext;

/// The longest condition, in characters. It bounds the work of every evaluation.
const MAX_LENGTH: usize = 1_000;

/// The deepest nesting of a condition. It bounds the stack that parsing and evaluating use.
const MAX_DEPTH: usize = 16;

/// The fields of `time`.
const TIME_FIELDS: [&str; 8] = [
    "hour", "minute", "clock", "weekday", "day", "month", "year", "date",
];

/// The variables of a condition.
const VARIABLES: [&str; 3] = ["time", "load", "request"];

/// The functions of a condition.
const FUNCTIONS: [&str; 5] = ["contains", "endsWith", "has", "size", "startsWith"];

/// A condition that passed the static checks: every name in it is known and the kinds of its values match.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    expression: Expression,
}

/// The values that conditions can read.
#[derive(Clone, Debug)]
pub struct ConditionInputs {
    /// The time of the decision.
    pub now: Timestamp,
    /// The time zone of the `time` fields.
    pub zone: TimeZone,
    /// The system load, if the host measures it.
    pub load: Option<f64>,
    /// The request attributes from the host: texts, numbers, booleans and lists of these.
    pub attributes: BTreeMap<String, Value>,
}

/// Why a text is not a condition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidCondition {
    /// The text is too long.
    #[error("the condition has {length} characters, {MAX_LENGTH} are allowed")]
    TooLong {
        /// How many characters it has.
        length: usize,
    },
    /// The condition is nested too deeply.
    #[error("the condition nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The text is not an expression.
    #[error("{message} (line {}, column {})", position.line, position.column)]
    Syntax {
        /// The parser's message.
        message: String,
        /// Where in the condition.
        position: Position,
    },
    /// A variable does not exist.
    #[error("unknown variable `{name}`{}", did_you_mean(name, VARIABLES))]
    UnknownVariable {
        /// The name used.
        name: String,
    },
    /// `time` has no such field.
    #[error("unknown field `time.{name}`{}", did_you_mean(name, TIME_FIELDS))]
    UnknownField {
        /// The name used.
        name: String,
    },
    /// A function does not exist.
    #[error("unknown function `{name}`{}", did_you_mean(name, FUNCTIONS))]
    UnknownFunction {
        /// The name used.
        name: String,
    },
    /// A function is called with the wrong number of arguments or without a receiver.
    #[error("wrong use of `{name}`")]
    WrongCall {
        /// The function.
        name: String,
    },
    /// A part of CEL that conditions do not support.
    #[error("{what} not supported in conditions")]
    Unsupported {
        /// The part, as the subject of the sentence.
        what: &'static str,
    },
    /// An operator or function does not accept a value of this kind.
    #[error("`{operator}` does not work with {found}")]
    WrongKind {
        /// The operator or function.
        operator: String,
        /// The kind of the value.
        found: &'static str,
    },
    /// An operator does not accept this combination of kinds.
    #[error("`{operator}` does not work between {left} and {right}")]
    WrongKinds {
        /// The operator.
        operator: String,
        /// The kind of the left value.
        left: &'static str,
        /// The kind of the right value.
        right: &'static str,
    },
    /// A field of `time` is compared with a text that it never holds.
    #[error("`{text}` is not {expected}")]
    WrongText {
        /// The text in the condition.
        text: String,
        /// What the field holds.
        expected: &'static str,
    },
    /// The condition as a whole is not a boolean.
    #[error("the condition gives {found}, not a boolean")]
    NotBoolean {
        /// What it gives.
        found: &'static str,
    },
}

/// Why a condition cannot be evaluated; the safe reading is that the group is off.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConditionError {
    /// The host does not measure the load.
    #[error("load is not known")]
    LoadUnknown,
    /// The host did not give this attribute.
    #[error("request.{name} is not given")]
    AttributeMissing {
        /// The attribute.
        name: String,
    },
    /// The host gave an attribute of a type that conditions cannot read, so all of `request` is unknown.
    #[error("request.{name} is neither a text, a number, a boolean nor a list of these")]
    AttributeUnusable {
        /// The attribute.
        name: String,
    },
    /// An operator or function does not accept an attribute of this kind.
    #[error("`{operator}` does not work with {kinds}")]
    WrongKinds {
        /// The operator or function.
        operator: String,
        /// The kinds of the values, never the values.
        kinds: String,
    },
    /// An index is beyond the end of its list.
    #[error("an index lies outside its list")]
    OutsideList,
    /// A division by zero or a result that is too large.
    #[error("a calculation divides by zero or overflows")]
    Arithmetic,
    /// The result is not a boolean.
    #[error("the condition gives {found}, not a boolean")]
    NotBoolean {
        /// What it gives.
        found: String,
    },
    /// Any other error of the evaluator.
    #[error("the condition cannot be evaluated")]
    Other,
}

/// A name that is not in the IANA time zone database.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown time zone `{name}`{suggestion}")]
pub struct UnknownTimeZone {
    /// The name.
    pub name: String,
    /// The text that suggests the closest known name.
    pub suggestion: String,
}

/// The time zone with an IANA name such as `Europe/Berlin`, from the database built into this program.
///
/// # Errors
/// Returns the name if the zone does not exist.
pub fn parse_time_zone(name: &str) -> Result<TimeZone, UnknownTimeZone> {
    let database = TimeZoneDatabase::bundled();
    let zone = database.get(name).ok().filter(|zone| !zone.is_unknown());
    zone.ok_or_else(|| UnknownTimeZone {
        name: name.to_owned(),
        suggestion: closest_zone(&database, name),
    })
}

impl Condition {
    /// Parses a condition and checks everything that does not depend on the request.
    ///
    /// # Errors
    /// Why the condition could never be evaluated.
    pub fn parse(text: &str) -> Result<Self, InvalidCondition> {
        let length = text.chars().count();
        if length > MAX_LENGTH {
            return Err(InvalidCondition::TooLong { length });
        }
        // The parser bounds its recursion except for `a ? b : c ? d : …`.
        if text.matches('?').count() > MAX_DEPTH {
            return Err(InvalidCondition::TooDeep);
        }
        let expression = PrattParser::new()
            .max_recursion_depth(u16::try_from(MAX_DEPTH).unwrap_or(u16::MAX))
            .parse(text)
            .map_err(|errors| syntax_error(text, &errors))?;
        check::check(&expression)?;
        Ok(Self {
            text: text.to_owned(),
            expression,
        })
    }

    /// The condition as it is written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the condition holds under the given circumstances.
    ///
    /// # Errors
    /// Why the condition cannot be evaluated.
    pub fn holds(&self, condition_inputs: &ConditionInputs) -> Result<bool, ConditionError> {
        self.holds_in(&ConditionContext::new(condition_inputs))
    }

    /// Whether the condition holds under circumstances that were prepared for many conditions.
    ///
    /// # Errors
    /// Why the condition cannot be evaluated.
    pub fn holds_in(&self, prepared: &ConditionContext<'_>) -> Result<bool, ConditionError> {
        match cel::Value::resolve(&self.expression, &prepared.context) {
            Ok(cel::Value::Bool(answer)) => Ok(answer),
            Ok(other) => Err(ConditionError::NotBoolean {
                found: kind_name(other.type_of()).to_owned(),
            }),
            Err(error) => Err(condition_error(&error, prepared)),
        }
    }
}

fn closest_zone(database: &TimeZoneDatabase, name: &str) -> String {
    // No zone has a name this long, and the cost of the comparison grows with the length.
    if name.len() > 64 {
        return String::new();
    }
    let zones: Vec<_> = database.available().collect();
    let zones = zones.iter().map(|zone| zone.as_str());
    did_you_mean(name, zones.filter(|zone| is_near(name, zone)))
}

/// Whether every part of a name is close. If the whole names were compared, any short city would be close
/// to any other in the same area.
fn is_near(name: &str, zone: &str) -> bool {
    let (parts, known) = (name.split('/'), zone.split('/'));
    parts.clone().count() == known.clone().count()
        && parts
            .zip(known)
            .all(|(part, known)| !did_you_mean(part, [known]).is_empty())
}

fn syntax_error(text: &str, errors: &cel::ParseErrors) -> InvalidCondition {
    let Some(error) = errors.errors.first() else {
        return InvalidCondition::TooDeep;
    };
    if error.msg.contains("recursion limit exceeded") {
        return InvalidCondition::TooDeep;
    }
    // The parser counts columns in bytes.
    let line = usize::try_from(error.pos.0).unwrap_or(1).max(1);
    let bytes = usize::try_from(error.pos.1).unwrap_or(1).saturating_sub(1);
    let written = text.split('\n').nth(line - 1).unwrap_or_default();
    let before = written.char_indices().take_while(|(at, _)| *at < bytes);
    let message = error.msg.trim_start_matches("Syntax error: ");
    InvalidCondition::Syntax {
        message: message.to_owned(),
        position: Position {
            line,
            column: before.count() + 1,
        },
    }
}

/// Maps the evaluator's error to ours, without the values that it quotes.
fn condition_error(error: &ExecutionError, prepared: &ConditionContext<'_>) -> ConditionError {
    let wrong_kinds = |operator: &str, kinds: &[String]| ConditionError::WrongKinds {
        operator: check::operator_text(operator).to_owned(),
        kinds: kinds.join(" and "),
    };
    match error {
        ExecutionError::UndeclaredReference(name) if name.as_str() == "load" => {
            ConditionError::LoadUnknown
        }
        ExecutionError::UndeclaredReference(_) => match &prepared.unusable {
            Some(name) => ConditionError::AttributeUnusable { name: name.clone() },
            None => ConditionError::Other,
        },
        ExecutionError::NoSuchKey(name) => ConditionError::AttributeMissing {
            name: name.to_string(),
        },
        ExecutionError::NoSuchOverload(overload) => {
            wrong_kinds(overload.function(), overload.argument_types())
        }
        ExecutionError::UnsupportedBinaryOperator(operator, left, right) => {
            let kinds = [left, right].map(|value| kind_name(value.type_of()).to_owned());
            wrong_kinds(operator, &kinds)
        }
        ExecutionError::UnexpectedType { got, want: _ } => {
            wrong_kinds("?:", std::slice::from_ref(got))
        }
        ExecutionError::IndexOutOfBounds(_) => ConditionError::OutsideList,
        ExecutionError::DivisionByZero(_)
        | ExecutionError::RemainderByZero(_)
        | ExecutionError::Overflow(..) => ConditionError::Arithmetic,
        _ => ConditionError::Other,
    }
}

fn kind_name(kind: ValueType) -> &'static str {
    match kind {
        ValueType::List => "a list",
        ValueType::Map => "a map",
        ValueType::Int | ValueType::UInt => "a whole number",
        ValueType::Float => "a decimal number",
        ValueType::String => "a text",
        ValueType::Bool => "a boolean",
        ValueType::Null => "null",
        _ => "another value",
    }
}

#[cfg(test)]
mod tests;
