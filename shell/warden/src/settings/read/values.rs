//! Values as the settings have them.

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde_json::Value;
use toolwarden_mcp::Endpoint;
use toolwarden_model::document::{Mistake, Placed, Section};
use toolwarden_model::json::type_name;

use super::super::size::{InvalidSize, size};
use super::super::table::Table;
use super::super::{SettingsProblem, bare_url};
use super::Reading;

impl Reading<'_> {
    pub(super) fn section<'d>(&mut self, at: &Placed<'d>, table: &Table) -> Section<'d> {
        let section = self.reader.section(at, &table.keys());
        if at.value.is_object() {
            for field in table.fields.iter().filter(|field| field.required) {
                self.reader.required(&section, field.name);
            }
        }
        section
    }

    /// The one that is there of the keys of which one has to be.
    pub(super) fn exactly_one<'s, 'd>(
        &mut self,
        section: &'s Section<'d>,
        table: &Table,
    ) -> Option<(&'static str, &'s Placed<'d>)> {
        let keys = table.exactly_one.iter();
        let mut found = keys.filter_map(|key| Some((*key, section.said(key)?)));
        let Some((one, at)) = found.next() else {
            let keys = table.exactly_one.iter().map(|key| format!("`{key}`"));
            let keys = keys.collect::<Vec<_>>().join(", ");
            self.reader
                .error(&section.pointer, SettingsProblem::NoneOf { keys });
            return None;
        };
        if let Some((other, second)) = found.next() {
            self.reader
                .error(&second.pointer, Mistake::Exclusive { one, other });
            return None;
        }
        Some((one, at))
    }

    pub(super) fn line(&mut self, at: &Placed<'_>, what: &'static str) -> Option<String> {
        self.reader.line(at, what).map(ToOwned::to_owned)
    }

    pub(super) fn lines(&mut self, at: &Placed<'_>, what: &'static str) -> Vec<String> {
        let texts = self.reader.texts(at, what);
        texts.into_iter().map(|(text, _)| text).collect()
    }

    /// A path, joined to the folder of the settings.
    pub(super) fn path(&mut self, at: &Placed<'_>) -> Option<PathBuf> {
        let path = self.reader.line(at, "a path")?;
        Some(self.folder.join(path))
    }

    /// A text, or a number or truth value that is meant as one.
    pub(super) fn scalar(&mut self, at: &Placed<'_>) -> Option<String> {
        match at.value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(truth) => Some(truth.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                let expected = "a text";
                let found = type_name(at.value).to_owned();
                self.reader
                    .error(&at.pointer, Mistake::Type { expected, found });
                None
            }
        }
    }

    pub(super) fn pairs(&mut self, at: &Placed<'_>, what: &'static str) -> Vec<(String, String)> {
        let named = self.reader.named(at, what).into_iter();
        named
            .filter_map(|(name, at)| Some((name.to_owned(), self.scalar(&at)?)))
            .collect()
    }

    /// An address as written.
    pub(super) fn address(&mut self, at: &Placed<'_>) -> Option<String> {
        let text = self.line(at, "an address")?;
        if Endpoint::url(&text).is_err() {
            let text = bare_url(&text);
            self.reader
                .error(&at.pointer, SettingsProblem::Address { text });
            return None;
        }
        Some(text)
    }

    pub(super) fn size(&mut self, at: &Placed<'_>) -> Option<usize> {
        let text = self.scalar(at)?;
        match size(&text) {
            Ok(size) => Some(size),
            Err(InvalidSize { text }) => {
                self.reader.error(&at.pointer, InvalidSize { text });
                None
            }
        }
    }

    // What was put in is text; where a number or truth value belongs it is taken as one.

    pub(super) fn count(&mut self, at: &Placed<'_>) -> Option<NonZeroU32> {
        let put_in = self.put_in(at).and_then(|text| text.parse().ok());
        put_in.or_else(|| self.reader.count(at))
    }

    pub(super) fn truth(&mut self, at: &Placed<'_>) -> Option<bool> {
        let put_in = self.put_in(at).and_then(|text| text.parse().ok());
        put_in.or_else(|| self.reader.truth(at))
    }

    /// A number from zero to one, in thousandths.
    pub(super) fn share(&mut self, at: &Placed<'_>) -> Option<u32> {
        let put_in = self.put_in(at).and_then(|text| text.parse().ok());
        let number = put_in.or_else(|| self.reader.number(at))?;
        let thousandths = (0..=1000_u32).find(|it| (f64::from(*it) - number * 1000.0).abs() <= 0.5);
        if !(0.0..=1.0).contains(&number) || thousandths.is_none() {
            let expected = "a number from 0 to 1";
            let found = number.to_string();
            self.reader
                .error(&at.pointer, Mistake::Type { expected, found });
            return None;
        }
        thousandths
    }

    fn put_in<'d>(&self, at: &Placed<'d>) -> Option<&'d str> {
        let text = at.value.as_str()?.trim();
        self.shown.contains_key(&at.pointer).then_some(text)
    }

    pub(super) fn warn(&mut self, at: &toolwarden_model::json::Pointer, message: &str) {
        self.warnings.push((at.clone(), message.to_owned()));
    }
}
