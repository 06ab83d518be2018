//! Takes a value apart, so that no key is overlooked.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use super::{
    Document, InvalidDuration, Key, Mistake, MistakeAt, Placed, Section, duration as parse_duration,
};
use crate::closest;
use crate::json::{Object, Pointer, Value, type_name};

/// Reads what a document says, and collects every mistake on the way.
///
/// What does not fit is told and left out, so that one reading finds all there is to correct. A
/// document with its own mistakes wraps [`Mistake`] in a type of its own.
#[derive(Clone, Debug)]
pub struct Reader<M = Mistake> {
    mistakes: Vec<(Pointer, M)>,
}

impl<M> Default for Reader<M> {
    fn default() -> Self {
        Self {
            mistakes: Vec::new(),
        }
    }
}

impl<M: From<Mistake>> Reader<M> {
    /// Notes a mistake.
    pub fn error(&mut self, pointer: &Pointer, mistake: impl Into<M>) {
        self.mistakes.push((pointer.clone(), mistake.into()));
    }

    /// The mistakes with their places, in the order of the text.
    #[must_use]
    pub fn finish(self, document: &Document) -> Vec<MistakeAt<M>> {
        let mistakes = self.mistakes.into_iter();
        let mut mistakes: Vec<_> = mistakes
            .map(|(pointer, mistake)| MistakeAt {
                position: document.position(&pointer),
                pointer,
                mistake,
            })
            .collect();
        mistakes.sort_by_key(|it| it.position);
        mistakes
    }

    /// The mistakes of a value that has no text, in the order they were found.
    #[must_use]
    pub fn into_mistakes(self) -> Vec<(Pointer, M)> {
        self.mistakes
    }

    /// A mapping.
    pub fn object<'d>(&mut self, at: &Placed<'d>) -> Option<&'d Object> {
        let object = at.value.as_object();
        if object.is_none() {
            self.wrong_type(at, "a mapping");
        }
        object
    }

    /// The members of a mapping whose keys are all known; one key in two spellings has to say the
    /// same twice.
    pub fn section<'d>(&mut self, at: &Placed<'d>, keys: &[Key]) -> Section<'d> {
        let mut section = Section::new(at.pointer.clone());
        let mut spelled: BTreeMap<&'static str, &str> = BTreeMap::new();
        for (written, value) in self.object(at).into_iter().flatten() {
            let pointer = at.pointer.child(written);
            let key = match Key::find(keys, written) {
                Ok(key) => key,
                Err(suggestion) => {
                    let key = written.clone();
                    self.error(&pointer, Mistake::UnknownKey { key, suggestion });
                    continue;
                }
            };
            if value.is_null() && key.needs_value() {
                // A restriction that somebody began to write must not be taken for none.
                let key = written.clone();
                self.error(&pointer, Mistake::NoValue { key });
            }
            let name = key.name();
            match section.get(name) {
                Some(before) if !key.agree(before.value, value) => {
                    let one = spelled.get(name).copied().unwrap_or_default().to_owned();
                    let other = written.clone();
                    self.error(&pointer, Mistake::TwoSpellings { one, other });
                }
                Some(_) => {}
                None => {
                    spelled.insert(name, written);
                    section.insert(name, Placed { pointer, value });
                }
            }
        }
        section
    }

    /// The member of a key that has to be there.
    pub fn required<'s, 'd>(
        &mut self,
        section: &'s Section<'d>,
        key: &'static str,
    ) -> Option<&'s Placed<'d>> {
        let member = section.said(key);
        if member.is_none() {
            self.error(&section.pointer, Mistake::Missing { key });
        }
        member
    }

    /// The members of a mapping from names that are up to the writer; `what` says what they name.
    pub fn named<'d>(&mut self, at: &Placed<'d>, what: &'static str) -> Vec<(&'d str, Placed<'d>)> {
        let mut named = Vec::new();
        for (name, value) in self.object(at).into_iter().flatten() {
            let pointer = at.pointer.child(name);
            if name.trim().is_empty() {
                self.error(&pointer, Mistake::Blank { what });
            } else {
                named.push((name.as_str(), Placed { pointer, value }));
            }
        }
        named
    }

    /// The elements of a list.
    pub fn list<'d>(&mut self, at: &Placed<'d>) -> Vec<Placed<'d>> {
        let Some(items) = at.value.as_array() else {
            self.wrong_type(at, "a list");
            return Vec::new();
        };
        elements(at, items)
    }

    /// A text.
    pub fn text<'d>(&mut self, at: &Placed<'d>) -> Option<&'d str> {
        let text = at.value.as_str();
        if text.is_none() {
            self.wrong_type(at, "a text");
        }
        text
    }

    /// A text that is not blank, without the white space around it; `what` says what it is.
    pub fn line<'d>(&mut self, at: &Placed<'d>, what: &'static str) -> Option<&'d str> {
        let text = self.text(at)?.trim();
        if text.is_empty() {
            self.error(&at.pointer, Mistake::Blank { what });
            return None;
        }
        Some(text)
    }

    /// A list of texts that are not blank; a single text is a list of one.
    pub fn texts(&mut self, at: &Placed<'_>, what: &'static str) -> Vec<(String, Pointer)> {
        let items = match at.value {
            Value::String(_) => vec![at.clone()],
            Value::Array(items) => elements(at, items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                self.wrong_type(at, "a list of texts");
                return Vec::new();
            }
        };
        let mut texts = Vec::new();
        for item in items {
            match self.text(&item) {
                Some(text) if text.trim().is_empty() => {
                    self.error(&item.pointer, Mistake::Blank { what });
                }
                Some(text) => texts.push((text.to_owned(), item.pointer)),
                None => {}
            }
        }
        texts
    }

    /// True or false.
    pub fn truth(&mut self, at: &Placed<'_>) -> Option<bool> {
        let truth = at.value.as_bool();
        if truth.is_none() {
            self.wrong_type(at, "true or false");
        }
        truth
    }

    /// One of several words.
    pub fn word<T: Copy>(&mut self, at: &Placed<'_>, words: &[(&'static str, T)]) -> Option<T> {
        let text = self.text(at)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let mistake = Mistake::Word {
                word: text.to_owned(),
                suggestion: closest(text, names.iter().copied()),
                known: names.join(", "),
            };
            self.error(&at.pointer, mistake);
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// A whole number from one upwards.
    pub fn count(&mut self, at: &Placed<'_>) -> Option<NonZeroU32> {
        let count = at
            .value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .and_then(NonZeroU32::new);
        if count.is_none() {
            self.wrong_number(at, "a whole number from 1 to 4294967295");
        }
        count
    }

    /// A whole number from zero upwards.
    pub fn whole(&mut self, at: &Placed<'_>) -> Option<u64> {
        let whole = at.value.as_u64();
        if whole.is_none() {
            self.wrong_number(at, "a whole number from 0 to 18446744073709551615");
        }
        whole
    }

    /// A number, fractions included.
    pub fn number(&mut self, at: &Placed<'_>) -> Option<f64> {
        let number = at.value.as_f64().filter(|number| number.is_finite());
        if number.is_none() {
            self.wrong_number(at, "a number");
        }
        number
    }

    /// A time, longer than none.
    pub fn duration(&mut self, at: &Placed<'_>) -> Option<Duration> {
        let text = match at.value {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                self.wrong_type(at, "a duration such as 60s");
                return None;
            }
        };
        let time = parse_duration(&text).ok().filter(|time| !time.is_zero());
        if time.is_none() {
            self.error(&at.pointer, Mistake::from(InvalidDuration { text }));
        }
        time
    }

    fn wrong_type(&mut self, at: &Placed<'_>, expected: &'static str) {
        let found = type_name(at.value).to_owned();
        self.error(&at.pointer, Mistake::Type { expected, found });
    }

    /// A number that does not fit is told itself, for its type would say nothing.
    fn wrong_number(&mut self, at: &Placed<'_>, expected: &'static str) {
        match at.value {
            Value::Number(number) => {
                let found = number.to_string();
                self.error(&at.pointer, Mistake::Type { expected, found });
            }
            _ => self.wrong_type(at, expected),
        }
    }
}

fn elements<'d>(at: &Placed<'d>, items: &'d [Value]) -> Vec<Placed<'d>> {
    let placed = items.iter().enumerate().map(|(index, value)| Placed {
        pointer: at.pointer.index(index),
        value,
    });
    placed.collect()
}

#[cfg(test)]
mod tests;
