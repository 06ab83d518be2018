//! Reads a value so that no key is overlooked.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use super::{
    Diagnostic, DiagnosticKind, Document, InvalidDuration, KeySpec, LocatedValue, Section,
    parse_duration,
};
use crate::did_you_mean;
use crate::json::{Object, Pointer, Value, type_name};

/// Reads a document, and collects every mistake.
///
/// An invalid part is reported and skipped, so that one pass finds all mistakes. A kind of document
/// with further mistakes wraps [`DiagnosticKind`] in its own type.
#[derive(Clone, Debug)]
pub struct DocumentReader<M = DiagnosticKind> {
    diagnostics: Vec<(Pointer, M)>,
}

impl<M> Default for DocumentReader<M> {
    fn default() -> Self {
        Self {
            diagnostics: Vec::new(),
        }
    }
}

impl<M: From<DiagnosticKind>> DocumentReader<M> {
    /// Adds a mistake.
    pub fn report(&mut self, pointer: &Pointer, mistake: impl Into<M>) {
        self.diagnostics.push((pointer.clone(), mistake.into()));
    }

    /// The mistakes with their locations, in text order.
    #[must_use]
    pub fn finish(self, document: &Document) -> Vec<Diagnostic<M>> {
        let mistakes = self.diagnostics.into_iter();
        let mut mistakes: Vec<_> = mistakes
            .map(|(pointer, mistake)| Diagnostic {
                position: document.position(&pointer),
                pointer,
                kind: mistake,
            })
            .collect();
        mistakes.sort_by_key(|it| it.position);
        mistakes
    }

    /// The mistakes of a value without a text, in the order they were found.
    #[must_use]
    pub fn into_diagnostics(self) -> Vec<(Pointer, M)> {
        self.diagnostics
    }

    /// A mapping.
    pub fn object<'d>(&mut self, at: &LocatedValue<'d>) -> Option<&'d Object> {
        let object = at.value.as_object();
        if object.is_none() {
            self.wrong_type(at, "a mapping");
        }
        object
    }

    /// The members of a mapping whose keys must all be known. A key in two spellings must have the
    /// same value in both.
    pub fn section<'d>(&mut self, at: &LocatedValue<'d>, keys: &[KeySpec]) -> Section<'d> {
        let mut section = Section::new(at.pointer.clone());
        let mut spelled: BTreeMap<&'static str, &str> = BTreeMap::new();
        for (written, value) in self.object(at).into_iter().flatten() {
            let pointer = at.pointer.child(written);
            let key = match KeySpec::find(keys, written) {
                Ok(key) => key,
                Err(suggestion) => {
                    let key = written.clone();
                    self.report(&pointer, DiagnosticKind::UnknownKey { key, suggestion });
                    continue;
                }
            };
            if value.is_null() && key.needs_value() {
                // A restriction that the user began to write must not be read as no restriction.
                let key = written.clone();
                self.report(&pointer, DiagnosticKind::MissingValue { key });
            }
            let name = key.name();
            match section.get(name) {
                Some(before) if !key.values_equal(before.value, value) => {
                    let one = spelled.get(name).copied().unwrap_or_default().to_owned();
                    let other = written.clone();
                    self.report(
                        &pointer,
                        DiagnosticKind::ConflictingSpellings { one, other },
                    );
                }
                Some(_) => {}
                None => {
                    spelled.insert(name, written);
                    section.insert(name, LocatedValue { pointer, value });
                }
            }
        }
        section
    }

    /// The member of a required key.
    pub fn required<'s, 'd>(
        &mut self,
        section: &'s Section<'d>,
        key: &'static str,
    ) -> Option<&'s LocatedValue<'d>> {
        let member = section.said(key);
        if member.is_none() {
            self.report(&section.pointer, DiagnosticKind::Missing { key });
        }
        member
    }

    /// The members of a mapping with freely chosen names; `what` says what they name.
    pub fn named<'d>(
        &mut self,
        at: &LocatedValue<'d>,
        what: &'static str,
    ) -> Vec<(&'d str, LocatedValue<'d>)> {
        let mut named = Vec::new();
        for (name, value) in self.object(at).into_iter().flatten() {
            let pointer = at.pointer.child(name);
            if name.trim().is_empty() {
                self.report(&pointer, DiagnosticKind::Blank { what });
            } else {
                named.push((name.as_str(), LocatedValue { pointer, value }));
            }
        }
        named
    }

    /// The elements of a list.
    pub fn list<'d>(&mut self, at: &LocatedValue<'d>) -> Vec<LocatedValue<'d>> {
        let Some(items) = at.value.as_array() else {
            self.wrong_type(at, "a list");
            return Vec::new();
        };
        elements(at, items)
    }

    /// A text.
    pub fn text<'d>(&mut self, at: &LocatedValue<'d>) -> Option<&'d str> {
        let text = at.value.as_str();
        if text.is_none() {
            self.wrong_type(at, "a text");
        }
        text
    }

    /// A non-blank text, trimmed; `what` says what it is.
    pub fn non_blank_text<'d>(
        &mut self,
        at: &LocatedValue<'d>,
        what: &'static str,
    ) -> Option<&'d str> {
        let text = self.text(at)?.trim();
        if text.is_empty() {
            self.report(&at.pointer, DiagnosticKind::Blank { what });
            return None;
        }
        Some(text)
    }

    /// A list of non-blank texts; a single text is a list of one.
    pub fn texts(&mut self, at: &LocatedValue<'_>, what: &'static str) -> Vec<(String, Pointer)> {
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
                    self.report(&item.pointer, DiagnosticKind::Blank { what });
                }
                Some(text) => texts.push((text.to_owned(), item.pointer)),
                None => {}
            }
        }
        texts
    }

    /// True or false.
    pub fn boolean(&mut self, at: &LocatedValue<'_>) -> Option<bool> {
        let truth = at.value.as_bool();
        if truth.is_none() {
            self.wrong_type(at, "true or false");
        }
        truth
    }

    /// One of several words.
    pub fn word<T: Copy>(
        &mut self,
        at: &LocatedValue<'_>,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let text = self.text(at)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let mistake = DiagnosticKind::UnknownWord {
                word: text.to_owned(),
                suggestion: did_you_mean(text, names.iter().copied()),
                known: names.join(", "),
            };
            self.report(&at.pointer, mistake);
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// An integer from 1.
    pub fn count(&mut self, at: &LocatedValue<'_>) -> Option<NonZeroU32> {
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

    /// An integer from 0.
    pub fn unsigned(&mut self, at: &LocatedValue<'_>) -> Option<u64> {
        let whole = at.value.as_u64();
        if whole.is_none() {
            self.wrong_number(at, "a whole number from 0 to 18446744073709551615");
        }
        whole
    }

    /// A number, fractions included.
    pub fn number(&mut self, at: &LocatedValue<'_>) -> Option<f64> {
        let number = at.value.as_f64().filter(|number| number.is_finite());
        if number.is_none() {
            self.wrong_number(at, "a number");
        }
        number
    }

    /// A duration greater than zero.
    pub fn duration(&mut self, at: &LocatedValue<'_>) -> Option<Duration> {
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
            self.report(&at.pointer, DiagnosticKind::from(InvalidDuration { text }));
        }
        time
    }

    fn wrong_type(&mut self, at: &LocatedValue<'_>, expected: &'static str) {
        let found = type_name(at.value).to_owned();
        self.report(&at.pointer, DiagnosticKind::WrongType { expected, found });
    }

    /// Shows a number that is out of range itself, because its type alone would not explain the
    /// mistake.
    fn wrong_number(&mut self, at: &LocatedValue<'_>, expected: &'static str) {
        match at.value {
            Value::Number(number) => {
                let found = number.to_string();
                self.report(&at.pointer, DiagnosticKind::WrongType { expected, found });
            }
            _ => self.wrong_type(at, expected),
        }
    }
}

fn elements<'d>(at: &LocatedValue<'d>, items: &'d [Value]) -> Vec<LocatedValue<'d>> {
    let placed = items.iter().enumerate().map(|(index, value)| LocatedValue {
        pointer: at.pointer.index(index),
        value,
    });
    placed.collect()
}

#[cfg(test)]
mod tests;
