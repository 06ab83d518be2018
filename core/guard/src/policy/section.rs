//! Takes a mapping apart, so that no key is overlooked.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::closest;
use toolwarden_model::json::{Object, Pointer, type_name};

use super::{PolicyError, PolicyWarning, Problem};

/// Mistakes and surprises, collected while a policy is read.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) errors: Vec<PolicyError>,
    pub(super) warnings: Vec<PolicyWarning>,
}

/// A value with the place it stands at.
#[derive(Clone, Debug)]
pub(super) struct Placed<'d> {
    pub(super) pointer: Pointer,
    pub(super) value: &'d Value,
}

/// The members of a mapping by their canonical key.
#[derive(Debug, Default)]
pub(super) struct Section<'d> {
    members: BTreeMap<&'static str, Placed<'d>>,
}

/// Keys of a tool that say something without a value: no group, no state, never available.
const MAY_BE_EMPTY: [&str; 3] = ["group", "state", "available_in_states"];

/// A key, and other words for it that are accepted.
pub(super) type Key = (&'static str, &'static [&'static str]);

impl Findings {
    pub(super) fn error(&mut self, pointer: &Pointer, problem: impl Into<Problem>) {
        self.errors.push(PolicyError {
            pointer: pointer.clone(),
            position: None,
            problem: problem.into(),
        });
    }

    pub(super) fn warn(&mut self, pointer: &Pointer, message: impl Into<String>) {
        self.warnings.push(PolicyWarning {
            pointer: pointer.clone(),
            message: message.into(),
        });
    }

    fn wrong_type(&mut self, at: &Placed<'_>, expected: &'static str) {
        let found = type_name(at.value).to_owned();
        self.error(&at.pointer, Problem::Type { expected, found });
    }

    pub(super) fn object<'d>(&mut self, at: &Placed<'d>) -> Option<&'d Object> {
        let object = at.value.as_object();
        if object.is_none() {
            self.wrong_type(at, "a mapping");
        }
        object
    }

    /// The members of a mapping whose keys are all known. Keys may be written in snake, kebab or
    /// camel case; one key in two spellings has to say the same twice.
    pub(super) fn section<'d>(&mut self, at: &Placed<'d>, keys: &[Key]) -> Section<'d> {
        let mut section = Section::default();
        let mut spelled: BTreeMap<&'static str, &str> = BTreeMap::new();
        for (written, value) in self.object(at).into_iter().flatten() {
            let snake = snake_case(written);
            let known = keys
                .iter()
                .find(|(key, others)| *key == snake || others.contains(&snake.as_str()));
            let Some((key, _)) = known else {
                let names = || keys.iter().map(|(key, _)| *key);
                let mut suggestion = closest(&snake, names());
                if suggestion.is_empty() {
                    let names: Vec<&str> = names().collect();
                    suggestion = format!("; known are {}", names.join(", "));
                }
                let key = written.clone();
                let pointer = at.pointer.child(written);
                self.error(&pointer, Problem::UnknownKey { key, suggestion });
                continue;
            };
            let placed = Placed {
                pointer: at.pointer.child(written),
                value,
            };
            if value.is_null() && !MAY_BE_EMPTY.contains(key) {
                // A restriction that somebody began to write must not be taken for none.
                let key = written.clone();
                self.error(&placed.pointer, Problem::NoValue { key });
            }
            match section.members.get(key) {
                Some(before) if before.value != value => {
                    let one = spelled.get(key).copied().unwrap_or_default().to_owned();
                    let other = written.clone();
                    self.error(&placed.pointer, Problem::TwoSpellings { one, other });
                }
                Some(_) => {}
                None => {
                    spelled.insert(key, written);
                    section.members.insert(key, placed);
                }
            }
        }
        section
    }

    /// The members of a mapping from names that are up to the writer.
    pub(super) fn named<'d>(
        &mut self,
        at: &Placed<'d>,
        what: &'static str,
    ) -> Vec<(&'d str, Placed<'d>)> {
        let mut named = Vec::new();
        for (name, value) in self.object(at).into_iter().flatten() {
            let pointer = at.pointer.child(name);
            if name.trim().is_empty() {
                self.error(&pointer, Problem::Blank { what });
            } else {
                named.push((name.as_str(), Placed { pointer, value }));
            }
        }
        named
    }

    pub(super) fn text<'d>(&mut self, at: &Placed<'d>) -> Option<&'d str> {
        let text = at.value.as_str();
        if text.is_none() {
            self.wrong_type(at, "a text");
        }
        text
    }

    pub(super) fn truth(&mut self, at: &Placed<'_>) -> Option<bool> {
        let truth = at.value.as_bool();
        if truth.is_none() {
            self.wrong_type(at, "true or false");
        }
        truth
    }

    /// A list of texts; a single text is a list of one.
    pub(super) fn texts(&mut self, at: &Placed<'_>, what: &'static str) -> Vec<(String, Pointer)> {
        let items = match at.value {
            Value::String(text) => vec![(text.as_str(), at.pointer.clone())],
            Value::Array(items) => {
                let mut texts = Vec::new();
                for (index, value) in items.iter().enumerate() {
                    let pointer = at.pointer.index(index);
                    let item = Placed { pointer, value };
                    texts.extend(self.text(&item).map(|text| (text, item.pointer)));
                }
                texts
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                self.wrong_type(at, "a list of texts");
                return Vec::new();
            }
        };
        let mut texts = Vec::new();
        for (text, pointer) in items {
            if text.trim().is_empty() {
                self.error(&pointer, Problem::Blank { what });
            } else {
                texts.push((text.to_owned(), pointer));
            }
        }
        texts
    }

    /// One of several words.
    pub(super) fn word<T: Copy>(
        &mut self,
        at: &Placed<'_>,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let text = self.text(at)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let problem = Problem::Word {
                word: text.to_owned(),
                suggestion: closest(text, names.iter().copied()),
                known: names.join(", "),
            };
            self.error(&at.pointer, problem);
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// A whole number from one upwards.
    pub(super) fn count(&mut self, at: &Placed<'_>) -> Option<std::num::NonZeroU32> {
        let count = at
            .value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .and_then(std::num::NonZeroU32::new);
        if count.is_none() {
            let found = match at.value {
                Value::Number(number) => number.to_string(),
                other => type_name(other).to_owned(),
            };
            let expected = "a whole number from 1 to 4294967295";
            self.error(&at.pointer, Problem::Type { expected, found });
        }
        count
    }

    /// A time, longer than none.
    pub(super) fn duration(&mut self, at: &Placed<'_>) -> Option<std::time::Duration> {
        let text = match at.value {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                self.wrong_type(at, "a duration such as 60s");
                return None;
            }
        };
        match super::duration(&text) {
            Ok(time) if !time.is_zero() => Some(time),
            Ok(_) => {
                self.error(&at.pointer, super::InvalidDuration { text });
                None
            }
            Err(invalid) => {
                self.error(&at.pointer, invalid);
                None
            }
        }
    }
}

impl<'d> Section<'d> {
    pub(super) fn get(&self, key: &str) -> Option<&Placed<'d>> {
        self.members.get(key)
    }

    /// The member unless it is null, which says nothing.
    pub(super) fn said(&self, key: &str) -> Option<&Placed<'d>> {
        self.get(key).filter(|it| !it.value.is_null())
    }
}

/// `available-in-states` and `availableInStates` as `available_in_states`.
fn snake_case(key: &str) -> String {
    let mut snake = String::with_capacity(key.len());
    for c in key.chars() {
        match c {
            '-' => snake.push('_'),
            c if c.is_ascii_uppercase() => {
                snake.push('_');
                snake.push(c.to_ascii_lowercase());
            }
            c => snake.push(c),
        }
    }
    snake
}
