//! Conditions: small CEL expressions that say whether a group is on right now.

mod attributes;
mod check;
mod prepared;

use std::collections::BTreeMap;

use cel::ExecutionError;
use cel::objects::ValueType;
use cel::parser::{Expression, PrattParser};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use thiserror::Error;
use toolwarden_model::closest;
use toolwarden_model::json::{Position, Value};

pub use prepared::Prepared;

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

/// A condition that was checked: every name in it is known and its parts fit together.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    expression: Expression,
}

/// What conditions can ask about.
#[derive(Clone, Debug)]
pub struct Circumstances {
    /// The time of the decision.
    pub now: Timestamp,
    /// The zone in which `time` is told.
    pub zone: TimeZone,
    /// How busy the system is, where the host measures it.
    pub load: Option<f64>,
    /// What the host says about the request: texts, numbers, booleans and lists of these.
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
        /// The parser's words.
        message: String,
        /// Where in the condition.
        position: Position,
    },
    /// A variable does not exist.
    #[error("unknown variable `{name}`{}", closest(name, VARIABLES))]
    UnknownVariable {
        /// The name used.
        name: String,
    },
    /// `time` has no such field.
    #[error("unknown field `time.{name}`{}", closest(name, TIME_FIELDS))]
    UnknownField {
        /// The name used.
        name: String,
    },
    /// A function does not exist.
    #[error("unknown function `{name}`{}", closest(name, FUNCTIONS))]
    UnknownFunction {
        /// The name used.
        name: String,
    },
    /// A function is called with the wrong number of arguments or on nothing.
    #[error("wrong use of `{name}`")]
    WrongCall {
        /// The function.
        name: String,
    },
    /// A part of CEL that conditions do not have.
    #[error("{what} not supported in conditions")]
    Unsupported {
        /// The part, as the subject of the sentence.
        what: &'static str,
    },
    /// A value is of a kind that its place does not take.
    #[error("`{operator}` does not work with {found}")]
    WrongKind {
        /// The operator or function.
        operator: String,
        /// The kind of the value.
        found: &'static str,
    },
    /// Two values are of kinds that do not go together.
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
    /// The condition as a whole is not a yes or no.
    #[error("the condition gives {found}, not a yes or no")]
    NotBoolean {
        /// What it gives.
        found: &'static str,
    },
}

/// Why a condition has no answer; the safe reading is that the group is off.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unevaluable {
    /// The host measures no load.
    #[error("load is not known")]
    LoadUnknown,
    /// The host gave no such attribute.
    #[error("request.{name} is not given")]
    AttributeMissing {
        /// The attribute.
        name: String,
    },
    /// The host gave an attribute that conditions cannot read, so `request` is not known.
    #[error("request.{name} is neither a text, a number, a boolean nor a list of these")]
    AttributeUnusable {
        /// The attribute.
        name: String,
    },
    /// An attribute is of a kind that its place does not take.
    #[error("`{operator}` does not work with {kinds}")]
    WrongKinds {
        /// The operator or function.
        operator: String,
        /// The kinds of the values, never the values.
        kinds: String,
    },
    /// A list is shorter than an index.
    #[error("an index lies outside its list")]
    OutsideList,
    /// A division by zero or a result that is too large.
    #[error("a calculation divides by zero or overflows")]
    Arithmetic,
    /// The answer is not a yes or no.
    #[error("the condition gives {found}, not a yes or no")]
    NotBoolean {
        /// What it gives.
        found: String,
    },
    /// Anything else the evaluator refuses.
    #[error("the condition cannot be evaluated")]
    Other,
}

/// A name that is no time zone of the IANA database.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown time zone `{name}`{suggestion}")]
pub struct UnknownZone {
    /// The name.
    pub name: String,
    /// What may have been meant.
    pub suggestion: String,
}

/// The time zone of an IANA name such as `Europe/Berlin`, from the database in this program.
///
/// # Errors
/// Returns the name if there is no such zone.
pub fn zone(name: &str) -> Result<TimeZone, UnknownZone> {
    let database = TimeZoneDatabase::bundled();
    let zone = database.get(name).ok().filter(|zone| !zone.is_unknown());
    zone.ok_or_else(|| UnknownZone {
        name: name.to_owned(),
        suggestion: closest_zone(&database, name),
    })
}

impl Condition {
    /// Reads a condition and checks everything that does not depend on the request.
    ///
    /// # Errors
    /// Says why the condition could never be evaluated.
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
    /// Says why there is no answer.
    pub fn holds(&self, circumstances: &Circumstances) -> Result<bool, Unevaluable> {
        self.holds_in(&Prepared::new(circumstances))
    }

    /// Whether the condition holds under circumstances that were prepared for many conditions.
    ///
    /// # Errors
    /// Says why there is no answer.
    pub fn holds_in(&self, prepared: &Prepared<'_>) -> Result<bool, Unevaluable> {
        match cel::Value::resolve(&self.expression, &prepared.context) {
            Ok(cel::Value::Bool(answer)) => Ok(answer),
            Ok(other) => Err(Unevaluable::NotBoolean {
                found: kind_name(other.type_of()).to_owned(),
            }),
            Err(error) => Err(unevaluable(&error, prepared)),
        }
    }
}

fn closest_zone(database: &TimeZoneDatabase, name: &str) -> String {
    // No zone has a name nearly as long, and comparing takes the longer the longer they are.
    if name.len() > 64 {
        return String::new();
    }
    let zones: Vec<_> = database.available().collect();
    let zones = zones.iter().map(|zone| zone.as_str());
    closest(name, zones.filter(|zone| is_near(name, zone)))
}

/// Whether every part of a name is near. With its area, any short city is near any other.
fn is_near(name: &str, zone: &str) -> bool {
    let (parts, known) = (name.split('/'), zone.split('/'));
    parts.clone().count() == known.clone().count()
        && parts
            .zip(known)
            .all(|(part, known)| !closest(part, [known]).is_empty())
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

/// The evaluator's error in our words, without the values that it quotes.
fn unevaluable(error: &ExecutionError, prepared: &Prepared<'_>) -> Unevaluable {
    let wrong_kinds = |operator: &str, kinds: &[String]| Unevaluable::WrongKinds {
        operator: check::operator_text(operator).to_owned(),
        kinds: kinds.join(" and "),
    };
    match error {
        ExecutionError::UndeclaredReference(name) if name.as_str() == "load" => {
            Unevaluable::LoadUnknown
        }
        ExecutionError::UndeclaredReference(_) => match &prepared.unusable {
            Some(name) => Unevaluable::AttributeUnusable { name: name.clone() },
            None => Unevaluable::Other,
        },
        ExecutionError::NoSuchKey(name) => Unevaluable::AttributeMissing {
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
        ExecutionError::IndexOutOfBounds(_) => Unevaluable::OutsideList,
        ExecutionError::DivisionByZero(_)
        | ExecutionError::RemainderByZero(_)
        | ExecutionError::Overflow(..) => Unevaluable::Arithmetic,
        _ => Unevaluable::Other,
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
