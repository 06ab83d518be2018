use std::cmp::Ordering;
use std::fmt;

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};
use serde_json::{Number, Value};

/// The largest power of ten a number may be written with. Beyond it nothing is computed.
const MAX_EXPONENT: i64 = 400;

/// A number, exactly.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ratio(BigRational);

impl fmt::Debug for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Ratio {
    pub(crate) fn of(number: &Number) -> Option<Self> {
        if let Some(small) = number.as_i64() {
            return Some(Self::from(small));
        }
        let text = number.as_str();
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if fraction.len() > 400 || whole.len() > 400 {
            return None;
        }
        let digits: BigInt = format!("{whole}{fraction}").parse().ok()?;
        let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        if exponent.abs() > MAX_EXPONENT + 400 {
            return None;
        }
        let power = BigInt::from(10).pow(u32::try_from(exponent.unsigned_abs()).ok()?);
        Some(Self(if exponent >= 0 {
            BigRational::from_integer(digits * power)
        } else {
            BigRational::new(digits, power)
        }))
    }

    pub(crate) fn of_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Self::of(number),
            _ => None,
        }
    }

    pub(crate) fn one() -> Self {
        Self(BigRational::one())
    }

    pub(crate) fn zero() -> Self {
        Self(BigRational::zero())
    }

    pub(crate) fn is_integer(&self) -> bool {
        self.0.is_integer()
    }

    pub(crate) fn is_multiple_of(&self, step: &Self) -> bool {
        !step.0.is_zero() && (&self.0 / &step.0).is_integer()
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self(&self.0 + &other.0)
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        Self(&self.0 * &other.0)
    }

    pub(crate) fn over(&self, divisor: i64) -> Self {
        Self(&self.0 / BigRational::from_integer(BigInt::from(divisor.max(1))))
    }

    /// The smallest multiple of `step` that is not below.
    pub(crate) fn up_to_multiple(&self, step: &Self) -> Self {
        Self((&self.0 / &step.0).ceil() * &step.0)
    }

    /// The largest multiple of `step` that is not above.
    pub(crate) fn down_to_multiple(&self, step: &Self) -> Self {
        Self((&self.0 / &step.0).floor() * &step.0)
    }

    /// The smallest positive number both are divisors of.
    pub(crate) fn lcm(&self, other: &Self) -> Self {
        let numerator = self.0.numer().lcm(other.0.numer());
        let denominator = self.0.denom().gcd(other.0.denom());
        Self(BigRational::new(numerator, denominator))
    }

    /// How many times `step` fits, if that is a small number.
    pub(crate) fn count_of(&self, step: &Self) -> Option<u64> {
        (&self.0 / &step.0).floor().to_integer().try_into().ok()
    }

    pub(crate) fn magnitude(&self) -> Self {
        Self(self.0.abs())
    }

    /// The number as JSON. Every number here comes from decimals, so its digits end.
    pub(crate) fn to_value(&self) -> Option<Value> {
        let mut denominator = self.0.denom().clone();
        let mut places = 0_usize;
        let mut numerator = self.0.numer().clone();
        let ten = BigInt::from(10);
        while !denominator.is_one() {
            if places > 900 {
                return None;
            }
            numerator *= &ten;
            places += 1;
            let divisor = numerator.gcd(&denominator);
            numerator /= &divisor;
            denominator /= &divisor;
        }
        let sign = if numerator.is_negative() { "-" } else { "" };
        let digits = numerator.magnitude().to_string();
        let digits = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = digits.split_at_checked(digits.len().checked_sub(places)?)?;
        let text = if fraction.is_empty() {
            format!("{sign}{whole}")
        } else {
            format!("{sign}{whole}.{fraction}")
        };
        serde_json::from_str::<Number>(&text)
            .ok()
            .map(Value::Number)
    }
}

impl From<i64> for Ratio {
    fn from(number: i64) -> Self {
        Self(BigRational::from_integer(BigInt::from(number)))
    }
}

/// Whether two JSON values are the same value: numbers by what they are, objects without order.
pub(crate) fn json_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => {
            a == b
                || matches!((Ratio::of(a), Ratio::of(b)), (Some(a), Some(b)) if a.cmp(&b) == Ordering::Equal)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| json_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| json_equal(a, b)))
        }
        _ => left == right,
    }
}
