//! Static checks of a condition: the names it uses and the kinds of its values.
//!
//! The check rejects every construct that is not listed here, so the evaluator never runs a loop or an
//! unexpected function.

use cel::common::ast::{CallExpr, Expr, LiteralValue, SelectExpr, operators};
use cel::parser::Expression;
use jiff::civil::Date;

use super::{FUNCTIONS, InvalidCondition, MAX_DEPTH};

/// The kind of value that an expression gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpressionKind {
    /// An attribute; only the host knows its kind.
    Any,
    Bool,
    Int,
    Double,
    Text,
    /// The text of `time.clock`.
    Clock,
    /// The text of `time.weekday`.
    Weekday,
    /// The text of `time.date`.
    Date,
    List,
    /// `request` itself.
    Request,
}

/// Kinds that can be compared with each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Any,
    Bool,
    Number,
    Text,
    List,
    Request,
}

/// Checks a whole condition.
pub(super) fn check(expression: &Expression) -> Result<(), InvalidCondition> {
    match kind_of(expression, 1)? {
        ExpressionKind::Any | ExpressionKind::Bool => Ok(()),
        other => Err(InvalidCondition::NotBoolean {
            found: other.name(),
        }),
    }
}

/// The operator as it is written in a condition.
pub(super) fn operator_text(name: &str) -> &str {
    match name {
        operators::CONDITIONAL => "?:",
        operators::INDEX => "[]",
        operators::IN => "in",
        "add" => "+",
        "sub" => "-",
        "mul" => "*",
        "div" => "/",
        "rem" => "%",
        _ => name.trim_matches('_'),
    }
}

fn kind_of(expression: &Expression, depth: usize) -> Result<ExpressionKind, InvalidCondition> {
    if depth > MAX_DEPTH {
        return Err(InvalidCondition::TooDeep);
    }
    let unsupported = |what| Err(InvalidCondition::Unsupported { what });
    match &expression.expr {
        Expr::Literal(literal) => literal_kind(literal),
        Expr::Ident(name) => variable_kind(name),
        Expr::Select(select) => field_kind(select, depth),
        Expr::Call(call) => call_kind(call, depth),
        Expr::List(list) => {
            for element in &list.elements {
                kind_of(element, depth + 1)?;
            }
            Ok(ExpressionKind::List)
        }
        Expr::Comprehension(_) => unsupported("`all`, `exists`, `map` and `filter` are"),
        Expr::Map(_) | Expr::Struct(_) => unsupported("maps are"),
        Expr::Unspecified => unsupported("empty expressions are"),
    }
}

fn literal_kind(literal: &LiteralValue) -> Result<ExpressionKind, InvalidCondition> {
    match literal {
        LiteralValue::Boolean(_) => Ok(ExpressionKind::Bool),
        LiteralValue::Double(_) => Ok(ExpressionKind::Double),
        LiteralValue::Int(_) => Ok(ExpressionKind::Int),
        LiteralValue::Null => Ok(ExpressionKind::Any),
        LiteralValue::String(_) => Ok(ExpressionKind::Text),
        LiteralValue::Bytes(_) => Err(InvalidCondition::Unsupported { what: "bytes are" }),
        LiteralValue::UInt(_) => Err(InvalidCondition::Unsupported {
            what: "unsigned numbers are",
        }),
    }
}

fn variable_kind(name: &str) -> Result<ExpressionKind, InvalidCondition> {
    match name {
        "load" => Ok(ExpressionKind::Double),
        "request" => Ok(ExpressionKind::Request),
        "time" => Err(InvalidCondition::Unsupported {
            what: "`time` without a field is",
        }),
        _ => Err(InvalidCondition::UnknownVariable {
            name: name.to_owned(),
        }),
    }
}

fn field_kind(select: &SelectExpr, depth: usize) -> Result<ExpressionKind, InvalidCondition> {
    let SelectExpr {
        operand,
        field,
        test,
    } = select;
    if matches!(&operand.expr, Expr::Ident(name) if name == "time") {
        let kind = time_kind(field)?;
        return match test {
            true => Err(wrong_call("has")),
            false => Ok(kind),
        };
    }
    match kind_of(operand, depth + 1)? {
        ExpressionKind::Request if *test => Ok(ExpressionKind::Bool),
        ExpressionKind::Request => Ok(ExpressionKind::Any),
        _ => Err(InvalidCondition::Unsupported {
            what: "fields of anything but `time` and `request` are",
        }),
    }
}

fn time_kind(field: &str) -> Result<ExpressionKind, InvalidCondition> {
    match field {
        "hour" | "minute" | "day" | "month" | "year" => Ok(ExpressionKind::Int),
        "clock" => Ok(ExpressionKind::Clock),
        "weekday" => Ok(ExpressionKind::Weekday),
        "date" => Ok(ExpressionKind::Date),
        _ => Err(InvalidCondition::UnknownField {
            name: field.to_owned(),
        }),
    }
}

fn call_kind(call: &CallExpr, depth: usize) -> Result<ExpressionKind, InvalidCondition> {
    let CallExpr {
        func_name,
        target,
        args,
    } = call;
    let name = func_name.as_str();
    let kind = |expression: &Expression| kind_of(expression, depth + 1);
    match (name, target.as_deref(), args.as_slice()) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, None, [left, right]) => {
            kind(left)?.expect_class(name, &[Class::Bool])?;
            kind(right)?.expect_class(name, &[Class::Bool])?;
            Ok(ExpressionKind::Bool)
        }
        (operators::LOGICAL_NOT, None, [operand]) => {
            kind(operand)?.expect_class(name, &[Class::Bool])?;
            Ok(ExpressionKind::Bool)
        }
        (operators::CONDITIONAL, None, [condition, yes, no]) => {
            kind(condition)?.expect_class(name, &[Class::Bool])?;
            let (yes, no) = (kind(yes)?, kind(no)?);
            Ok(if yes == no { yes } else { ExpressionKind::Any })
        }
        (operators::EQUALS | operators::NOT_EQUALS, None, [left, right]) => {
            let (left_kind, right_kind) = (kind(left)?, kind(right)?);
            comparable(name, (left, left_kind), (right, right_kind))?;
            Ok(ExpressionKind::Bool)
        }
        (
            operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS,
            None,
            [left, right],
        ) => {
            let (left_kind, right_kind) = (kind(left)?, kind(right)?);
            left_kind.expect_ordered(name)?;
            right_kind.expect_ordered(name)?;
            comparable(name, (left, left_kind), (right, right_kind))?;
            Ok(ExpressionKind::Bool)
        }
        (operators::IN, None, [item, list]) => {
            let (item_kind, list_kind) = (kind(item)?, kind(list)?);
            if let Expr::List(literal) = &list.expr {
                for element in &literal.elements {
                    comparable(name, (item, item_kind), (element, kind(element)?))?;
                }
            }
            list_kind.expect_class(name, &[Class::List, Class::Request])?;
            Ok(ExpressionKind::Bool)
        }
        (
            operators::ADD
            | operators::SUBSTRACT
            | operators::MULTIPLY
            | operators::DIVIDE
            | operators::MODULO,
            None,
            [left, right],
        ) => calculation(name, kind(left)?, kind(right)?),
        (operators::NEGATE, None, [operand]) => {
            let operand = kind(operand)?;
            operand.expect_class(name, &[Class::Number])?;
            Ok(operand)
        }
        (operators::INDEX, None, [list, index]) => index_kind(kind(list)?, index, kind(index)?),
        ("size", None, [operand]) | ("size", Some(operand), []) => {
            kind(operand)?.expect_class(name, &[Class::Text, Class::List, Class::Request])?;
            Ok(ExpressionKind::Int)
        }
        ("contains" | "startsWith" | "endsWith", Some(text), [part]) => {
            kind(text)?.expect_class(name, &[Class::Text])?;
            kind(part)?.expect_class(name, &[Class::Text])?;
            Ok(ExpressionKind::Bool)
        }
        _ if FUNCTIONS.contains(&name) => Err(wrong_call(name)),
        _ => Err(InvalidCondition::UnknownFunction {
            name: name.to_owned(),
        }),
    }
}

/// Rejects comparisons whose result would never change, such as `time.weekday == "monday"`.
fn comparable(
    operator: &str,
    (left, left_kind): (&Expression, ExpressionKind),
    (right, right_kind): (&Expression, ExpressionKind),
) -> Result<(), InvalidCondition> {
    let (left_class, right_class) = (left_kind.class(), right_kind.class());
    let known = left_class != Class::Any && right_class != Class::Any;
    if known && left_class != right_class {
        return Err(wrong_kinds(operator, left_kind, right_kind));
    }
    left_kind.expect_text(right)?;
    right_kind.expect_text(left)
}

fn calculation(
    operator: &str,
    left: ExpressionKind,
    right: ExpressionKind,
) -> Result<ExpressionKind, InvalidCondition> {
    match (operator, left.as_plain_text(), right.as_plain_text()) {
        (_, ExpressionKind::Int, ExpressionKind::Int | ExpressionKind::Any)
        | (_, ExpressionKind::Any, ExpressionKind::Int) => Ok(ExpressionKind::Int),
        (operators::MODULO, ExpressionKind::Any, ExpressionKind::Any) => Ok(ExpressionKind::Int),
        (_, ExpressionKind::Any, ExpressionKind::Any) => Ok(ExpressionKind::Any),
        (operators::MODULO, left, right) => Err(wrong_kinds(operator, left, right)),
        (_, ExpressionKind::Double, ExpressionKind::Double | ExpressionKind::Any)
        | (_, ExpressionKind::Any, ExpressionKind::Double) => Ok(ExpressionKind::Double),
        (operators::ADD, ExpressionKind::Text, ExpressionKind::Text | ExpressionKind::Any)
        | (operators::ADD, ExpressionKind::Any, ExpressionKind::Text) => Ok(ExpressionKind::Text),
        (operators::ADD, ExpressionKind::List, ExpressionKind::List | ExpressionKind::Any)
        | (operators::ADD, ExpressionKind::Any, ExpressionKind::List) => Ok(ExpressionKind::List),
        (_, left, right) => Err(wrong_kinds(operator, left, right)),
    }
}

/// An element of a list, or an attribute whose name is not an identifier, as in `request["team-id"]`.
fn index_kind(
    list_kind: ExpressionKind,
    index: &Expression,
    index_kind: ExpressionKind,
) -> Result<ExpressionKind, InvalidCondition> {
    let named = matches!(index.expr, Expr::Literal(LiteralValue::String(_)));
    let fits = match list_kind {
        // Only a literal name is allowed, so that an error about it cannot reveal an attribute's value.
        ExpressionKind::Request => named,
        ExpressionKind::Any | ExpressionKind::List => {
            matches!(index_kind, ExpressionKind::Int | ExpressionKind::Any)
        }
        _ => false,
    };
    if !fits {
        return Err(wrong_kinds(operators::INDEX, list_kind, index_kind));
    }
    Ok(ExpressionKind::Any)
}

impl ExpressionKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Any => "an attribute",
            Self::Bool => "a boolean",
            Self::Int => "a whole number",
            Self::Double => "a decimal number",
            Self::Text => "a text",
            Self::Clock => "a time of day",
            Self::Weekday => "a weekday",
            Self::Date => "a date",
            Self::List => "a list",
            Self::Request => "the whole request",
        }
    }

    const fn class(self) -> Class {
        match self {
            Self::Any => Class::Any,
            Self::Bool => Class::Bool,
            Self::Int | Self::Double => Class::Number,
            Self::Text | Self::Clock | Self::Weekday | Self::Date => Class::Text,
            Self::List => Class::List,
            Self::Request => Class::Request,
        }
    }

    /// The kind in a calculation, where the special kinds of text count as plain text.
    fn as_plain_text(self) -> Self {
        match self.class() {
            Class::Text => Self::Text,
            _ => self,
        }
    }

    fn expect_class(self, operator: &str, classes: &[Class]) -> Result<(), InvalidCondition> {
        let class = self.class();
        if class == Class::Any || classes.contains(&class) {
            return Ok(());
        }
        Err(self.wrong_for(operator))
    }

    /// Rejects weekdays: they are texts and would be ordered alphabetically.
    fn expect_ordered(self, operator: &str) -> Result<(), InvalidCondition> {
        if self == Self::Weekday {
            return Err(self.wrong_for(operator));
        }
        self.expect_class(operator, &[Class::Number, Class::Text])
    }

    /// Rejects a text that this field of `time` never holds: `9:00` would sort after `10:00`.
    fn expect_text(self, other: &Expression) -> Result<(), InvalidCondition> {
        let Expr::Literal(LiteralValue::String(text)) = &other.expr else {
            return Ok(());
        };
        let text = text.inner();
        let (fits, expected) = match self {
            Self::Clock => (is_clock(text), "a time of day such as `09:00`"),
            Self::Weekday => (
                is_weekday(text),
                "one of mon, tue, wed, thu, fri, sat and sun",
            ),
            Self::Date => (is_date(text), "a date such as `2026-11-16`"),
            _ => return Ok(()),
        };
        if fits {
            return Ok(());
        }
        let text = text.to_owned();
        Err(InvalidCondition::WrongText { text, expected })
    }

    fn wrong_for(self, operator: &str) -> InvalidCondition {
        InvalidCondition::WrongKind {
            operator: operator_text(operator).to_owned(),
            found: self.name(),
        }
    }
}

/// Whether a text is `HH:MM`, or the end of the day.
fn is_clock(text: &str) -> bool {
    let below = |part: &str, end: u8| {
        let digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        digits && part.parse::<u8>().is_ok_and(|number| number < end)
    };
    text == "24:00"
        || text
            .split_once(':')
            .is_some_and(|(hour, minute)| below(hour, 24) && below(minute, 60))
}

fn is_weekday(text: &str) -> bool {
    ["mon", "tue", "wed", "thu", "fri", "sat", "sun"].contains(&text)
}

fn is_date(text: &str) -> bool {
    text.parse::<Date>()
        .is_ok_and(|date| date.to_string() == text)
}

fn wrong_call(name: &str) -> InvalidCondition {
    InvalidCondition::WrongCall {
        name: name.to_owned(),
    }
}

fn wrong_kinds(operator: &str, left: ExpressionKind, right: ExpressionKind) -> InvalidCondition {
    InvalidCondition::WrongKinds {
        operator: operator_text(operator).to_owned(),
        left: left.name(),
        right: right.name(),
    }
}
