use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use toolwarden_model::reply::ArgumentsClass;

/// One fact that a trial showed. All rates are computed from the marks of trials; they are kept
/// together so that faults of the same trial stay connected.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrialMark {
    /// A declared tool was called.
    Called(String),
    /// A call of it had arguments that do not fit its schema, or no arguments object.
    Invalid(String),
    /// A call of it had an argument its schema does not name.
    Extra(String),
    /// A schema violation in a call of it.
    Fault {
        /// The tool.
        tool: String,
        /// The keyword.
        keyword: String,
        /// The path in the arguments, with `*` for the items of an array.
        pointer: String,
    },
    /// The argument that its schema does not name.
    ExtraKey {
        /// The tool.
        tool: String,
        /// The path in the arguments.
        pointer: String,
    },
    /// A call of it had arguments of this class.
    Encoded(ArgumentsClass, String),
    /// A tool was called that was not offered.
    Undeclared,
    /// This one.
    UndeclaredTool(String),
    /// A tool was called that the case forbids, by name or with all others.
    Forbidden(String),
    /// The model did not meet the case's expectation.
    Missed,
    /// The arguments were not those the case asks for.
    Inexact,
    /// Markup leaked into text.
    Leaked,
    /// The family and place of leaked markup.
    LeakOf {
        /// The family of the markup.
        family: String,
        /// `text`, `reasoning` or `arguments`.
        place: String,
    },
    /// Something sent as a call is not one, by the rule that reports it.
    Broken(String),
    /// The finish reason does not match the calls.
    Inconsistent,
}

impl fmt::Display for TrialMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Called(tool) => write!(f, "called:{tool}"),
            Self::Invalid(tool) => write!(f, "invalid:{tool}"),
            Self::Extra(tool) => write!(f, "extra:{tool}"),
            Self::Fault {
                tool,
                keyword,
                pointer,
            } => write!(f, "fault:{}", list(&[keyword, pointer, tool])),
            Self::ExtraKey { tool, pointer } => write!(f, "extra_key:{}", list(&[pointer, tool])),
            Self::Encoded(class, tool) => write!(f, "encoded:{}:{tool}", class.as_str()),
            Self::Undeclared => f.write_str("undeclared"),
            Self::UndeclaredTool(tool) => write!(f, "undeclared:{tool}"),
            Self::Forbidden(tool) => write!(f, "forbidden:{tool}"),
            Self::Missed => f.write_str("missed"),
            Self::Inexact => f.write_str("inexact"),
            Self::Leaked => f.write_str("leaked"),
            Self::LeakOf { family, place } => write!(f, "leaked:{place}:{family}"),
            Self::Broken(rule) => write!(f, "broken:{rule}"),
            Self::Inconsistent => f.write_str("inconsistent"),
        }
    }
}

/// Joins several arbitrary texts into one.
fn list(texts: &[&String]) -> String {
    serde_json::to_string(texts).unwrap_or_default()
}

/// The error for a text that is not a mark.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a mark of a trial")]
pub struct UnknownTrialMark(String);

impl FromStr for TrialMark {
    type Err = UnknownTrialMark;

    fn from_str(text: &str) -> Result<Self, UnknownTrialMark> {
        let unknown = || UnknownTrialMark(text.to_owned());
        // The tool comes last because its name may contain any character.
        let Some((kind, rest)) = text.split_once(':') else {
            return match text {
                "undeclared" => Ok(Self::Undeclared),
                "missed" => Ok(Self::Missed),
                "inexact" => Ok(Self::Inexact),
                "leaked" => Ok(Self::Leaked),
                "inconsistent" => Ok(Self::Inconsistent),
                _ => Err(unknown()),
            };
        };
        match kind {
            "called" => Ok(Self::Called(rest.to_owned())),
            "invalid" => Ok(Self::Invalid(rest.to_owned())),
            "extra" => Ok(Self::Extra(rest.to_owned())),
            "fault" => {
                let (keyword, pointer, tool) = serde_json::from_str(rest).map_err(|_| unknown())?;
                Ok(Self::Fault {
                    tool,
                    keyword,
                    pointer,
                })
            }
            "extra_key" => {
                let (pointer, tool) = serde_json::from_str(rest).map_err(|_| unknown())?;
                Ok(Self::ExtraKey { tool, pointer })
            }
            "undeclared" => Ok(Self::UndeclaredTool(rest.to_owned())),
            "forbidden" => Ok(Self::Forbidden(rest.to_owned())),
            "leaked" => {
                let (place, family) = rest.split_once(':').ok_or_else(unknown)?;
                Ok(Self::LeakOf {
                    family: family.to_owned(),
                    place: place.to_owned(),
                })
            }
            "broken" => Ok(Self::Broken(rest.to_owned())),
            "encoded" => {
                let (class, tool) = rest.split_once(':').ok_or_else(unknown)?;
                let class = ArgumentsClass::from_word(class).ok_or_else(unknown)?;
                Ok(Self::Encoded(class, tool.to_owned()))
            }
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_back_whatever_a_tool_is_called() {
        let tool = || "a:b:c".to_owned();
        for mark in [
            TrialMark::Called(tool()),
            TrialMark::Invalid(tool()),
            TrialMark::Extra(tool()),
            TrialMark::Encoded(ArgumentsClass::DoubleEncoded, tool()),
            TrialMark::Fault {
                tool: tool(),
                keyword: "k:\"k".to_owned(),
                pointer: "/a:b,\"/*".to_owned(),
            },
            TrialMark::ExtraKey {
                tool: tool(),
                pointer: "/a:b,\"".to_owned(),
            },
            TrialMark::Undeclared,
            TrialMark::UndeclaredTool(tool()),
            TrialMark::Forbidden(tool()),
            TrialMark::LeakOf {
                family: tool(),
                place: "text".to_owned(),
            },
            TrialMark::Broken(tool()),
            TrialMark::Missed,
            TrialMark::Inexact,
            TrialMark::Leaked,
            TrialMark::Inconsistent,
        ] {
            assert_eq!(mark.to_string().parse(), Ok(mark));
        }
        for text in [
            "",
            "calls:x",
            "encoded:x",
            "encoded:y:x",
            "fault:[]",
            "extra_key:x",
            "leaked:x",
            "Missed",
        ] {
            assert_eq!(
                text.parse::<TrialMark>(),
                Err(UnknownTrialMark(text.to_owned()))
            );
        }
    }
}
