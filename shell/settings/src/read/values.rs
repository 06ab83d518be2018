//! Reads values of the settings.

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde_json::Value;
use toolwarden_mcp::Endpoint;
use toolwarden_model::document::{DiagnosticKind, LocatedValue, Section};
use toolwarden_model::json::type_name;

use super::super::key_table::KeyTable;
use super::super::size::{InvalidSize, parse_size};
use super::super::{SettingsProblem, bare_url};
use super::SettingsReader;

impl SettingsReader<'_> {
    pub(super) fn section<'d>(&mut self, at: &LocatedValue<'d>, table: &KeyTable) -> Section<'d> {
        let section = self.reader.section(at, &table.keys());
        if at.value.is_object() {
            for field in table.fields.iter().filter(|field| field.required) {
                self.reader.required(&section, field.name);
            }
        }
        section
    }

    /// The single key that is given, of several of which exactly one is required.
    pub(super) fn exactly_one<'s, 'd>(
        &mut self,
        section: &'s Section<'d>,
        table: &KeyTable,
    ) -> Option<(&'static str, &'s LocatedValue<'d>)> {
        let keys = table.exactly_one.iter();
        let mut found = keys.filter_map(|key| Some((*key, section.said(key)?)));
        let Some((one, at)) = found.next() else {
            let keys = table.exactly_one.iter().map(|key| format!("`{key}`"));
            let keys = keys.collect::<Vec<_>>().join(", ");
            self.reader
                .report(&section.pointer, SettingsProblem::NoneOf { keys });
            return None;
        };
        if let Some((other, second)) = found.next() {
            self.reader.report(
                &second.pointer,
                DiagnosticKind::ConflictingKeys { one, other },
            );
            return None;
        }
        Some((one, at))
    }

    pub(super) fn line(&mut self, at: &LocatedValue<'_>, what: &'static str) -> Option<String> {
        self.reader.non_blank_text(at, what).map(ToOwned::to_owned)
    }

    pub(super) fn lines(&mut self, at: &LocatedValue<'_>, what: &'static str) -> Vec<String> {
        let texts = self.reader.texts(at, what);
        texts.into_iter().map(|(text, _)| text).collect()
    }

    /// A path, joined to the folder of the settings.
    pub(super) fn path(&mut self, at: &LocatedValue<'_>) -> Option<PathBuf> {
        let path = self.reader.non_blank_text(at, "a path")?;
        Some(self.folder.join(path))
    }

    /// Paths, joined to the folder of the settings.
    pub(super) fn paths(&mut self, at: &LocatedValue<'_>) -> Vec<PathBuf> {
        let paths = self.lines(at, "a path").into_iter();
        paths.map(|path| self.folder.join(path)).collect()
    }

    /// A text, or a number or boolean that is read as one.
    pub(super) fn scalar(&mut self, at: &LocatedValue<'_>) -> Option<String> {
        match at.value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(truth) => Some(truth.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                let expected = "a text";
                let found = type_name(at.value).to_owned();
                self.reader
                    .report(&at.pointer, DiagnosticKind::WrongType { expected, found });
                None
            }
        }
    }

    pub(super) fn pairs(
        &mut self,
        at: &LocatedValue<'_>,
        what: &'static str,
    ) -> Vec<(String, String)> {
        let named = self.reader.named(at, what).into_iter();
        named
            .filter_map(|(name, at)| Some((name.to_owned(), self.scalar(&at)?)))
            .collect()
    }

    /// An address as written.
    pub(super) fn address(&mut self, at: &LocatedValue<'_>) -> Option<String> {
        let text = self.line(at, "an address")?;
        if Endpoint::url(&text).is_err() {
            let text = bare_url(&text);
            self.reader
                .report(&at.pointer, SettingsProblem::Address { text });
            return None;
        }
        Some(text)
    }

    pub(super) fn size(&mut self, at: &LocatedValue<'_>) -> Option<usize> {
        let text = self.scalar(at)?;
        match parse_size(&text) {
            Ok(size) => Some(size),
            Err(InvalidSize { text }) => {
                self.reader.report(&at.pointer, InvalidSize { text });
                None
            }
        }
    }

    // An expanded value is text; where a number or boolean is expected, it is parsed as one.

    pub(super) fn count(&mut self, at: &LocatedValue<'_>) -> Option<NonZeroU32> {
        let interpolated = self
            .interpolated_text(at)
            .and_then(|text| text.parse().ok());
        interpolated.or_else(|| self.reader.count(at))
    }

    pub(super) fn boolean(&mut self, at: &LocatedValue<'_>) -> Option<bool> {
        let interpolated = self
            .interpolated_text(at)
            .and_then(|text| text.parse().ok());
        interpolated.or_else(|| self.reader.boolean(at))
    }

    /// A number from zero to one, in thousandths.
    pub(super) fn fraction(&mut self, at: &LocatedValue<'_>) -> Option<u32> {
        let interpolated = self
            .interpolated_text(at)
            .and_then(|text| text.parse().ok());
        let number = interpolated.or_else(|| self.reader.number(at))?;
        let thousandths = (0..=1000_u32).find(|it| (f64::from(*it) - number * 1000.0).abs() <= 0.5);
        if !(0.0..=1.0).contains(&number) || thousandths.is_none() {
            let expected = "a number from 0 to 1";
            let found = number.to_string();
            self.reader
                .report(&at.pointer, DiagnosticKind::WrongType { expected, found });
            return None;
        }
        thousandths
    }

    fn interpolated_text<'d>(&self, at: &LocatedValue<'d>) -> Option<&'d str> {
        let text = at.value.as_str()?.trim();
        self.masked_texts.contains_key(&at.pointer).then_some(text)
    }

    pub(super) fn warn(&mut self, at: &toolwarden_model::json::Pointer, message: &str) {
        self.warnings.push((at.clone(), message.to_owned()));
    }
}
