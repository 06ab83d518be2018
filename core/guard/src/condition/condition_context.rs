use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull};
use cel::common::types::{CelString, CelUInt};
use cel::common::value::Val;
use cel::{Context, Env};
use jiff::Zoned;
use jiff::civil::Weekday;
use toolwarden_model::json::{Number, Value};

use super::ConditionInputs;

/// The functions of CEL, built once: building the table takes longer than a hundred evaluations.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// Circumstances converted for CEL, once for all conditions of a request.
pub struct ConditionContext<'c> {
    pub(super) context: Context<'c, 'c>,
    /// The unreadable attribute that made all of `request` unavailable.
    pub(super) unusable: Option<String>,
}

impl<'c> ConditionContext<'c> {
    /// Prepares the circumstances of one request.
    #[must_use]
    pub fn new(condition_inputs: &'c ConditionInputs) -> Self {
        let ConditionInputs {
            now,
            zone,
            load,
            attributes,
        } = condition_inputs;
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        add_time(&mut context, &now.to_zoned(zone.clone()));
        // Without this check NaN would make every comparison false, including a negated one.
        if let Some(load) = load.filter(|load| load.is_finite()) {
            context.add_variable_as_val("load", Box::new(CelDouble::from(load)));
        }
        let mut request = HashMap::with_capacity(attributes.len());
        for (name, attribute) in attributes {
            let Some(value) = attribute_value(attribute) else {
                // Omitting only this attribute would make `!has(request.name)` hold.
                let unusable = Some(name.clone());
                return Self { context, unusable };
            };
            request.insert(CelMapKey::from(name.as_str()), value);
        }
        context.add_variable_as_val("request", Box::new(CelMap::from(request)));
        Self {
            context,
            unusable: None,
        }
    }
}

impl fmt::Debug for ConditionContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("unusable", &self.unusable)
            .finish_non_exhaustive()
    }
}

/// Adds `time.hour` and the other fields, each as a variable with a dot in its name. CEL tries the longest
/// name first, so no map has to be built.
fn add_time(context: &mut Context<'_, '_>, now: &Zoned) {
    let numbers = [
        ("time.hour", i64::from(now.hour())),
        ("time.minute", i64::from(now.minute())),
        ("time.day", i64::from(now.day())),
        ("time.month", i64::from(now.month())),
        ("time.year", i64::from(now.year())),
    ];
    for (name, number) in numbers {
        context.add_variable_as_val(name, Box::new(CelInt::from(number)));
    }
    let clock = format!("{:02}:{:02}", now.hour(), now.minute());
    let weekday = weekday_name(now.weekday());
    context.add_variable_as_val("time.clock", Box::new(CelString::from(clock)));
    context.add_variable_as_val("time.weekday", Box::new(CelString::from(weekday)));
    context.add_variable_as_val(
        "time.date",
        Box::new(CelString::from(now.date().to_string())),
    );
}

const fn weekday_name(weekday: Weekday) -> &'static str {
    match weekday {
        Weekday::Monday => "mon",
        Weekday::Tuesday => "tue",
        Weekday::Wednesday => "wed",
        Weekday::Thursday => "thu",
        Weekday::Friday => "fri",
        Weekday::Saturday => "sat",
        Weekday::Sunday => "sun",
    }
}

fn attribute_value(attribute: &Value) -> Option<Box<dyn Val + '_>> {
    let Value::Array(items) = attribute else {
        return scalar_value(attribute);
    };
    let items: Option<Vec<_>> = items.iter().map(scalar_value).collect();
    Some(Box::new(CelList::from(items?)))
}

fn scalar_value(value: &Value) -> Option<Box<dyn Val + '_>> {
    Some(match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(value) => Box::new(CelBool::from(*value)),
        Value::Number(number) => return number_value(number),
        Value::String(text) => Box::new(CelString::from(text.as_str())),
        Value::Array(_) | Value::Object(_) => return None,
    })
}

/// Converts a number to CEL. An integer beyond 64 bits is not converted: rounded, it could equal another.
fn number_value<'v>(number: &Number) -> Option<Box<dyn Val + 'v>> {
    if let Some(number) = number.as_i64() {
        return Some(Box::new(CelInt::from(number)));
    }
    if let Some(number) = number.as_u64() {
        return Some(Box::new(CelUInt::from(number)));
    }
    let decimal = number.as_str().contains(['.', 'e', 'E']);
    let number = number
        .as_f64()
        .filter(|number| decimal && number.is_finite())?;
    Some(Box::new(CelDouble::from(number)))
}
