//! Objects taken apart one level deep, so that some members can be changed and all else stays as it
//! was written.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap as _, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// So many keys are sooner compared with each other than sorted.
const FEW: usize = 8;

/// The members of one object in written order, values as text. A key that is written twice is there
/// twice; [`Members::get`] takes the last, as every reader of JSON does.
#[derive(Clone, Debug, Default)]
pub struct Members<'t> {
    list: Vec<(Cow<'t, str>, Text<'t>)>,
}

/// The text of a member.
#[derive(Clone, Debug)]
enum Text<'t> {
    /// As it was read, so that it is known to be JSON.
    Read(&'t RawValue),
    /// As somebody set it.
    Set(Cow<'t, str>),
}

impl Text<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::Read(raw) => raw.get(),
            Self::Set(text) => text,
        }
    }
}

impl<'t> Members<'t> {
    /// Takes an object apart.
    ///
    /// # Errors
    /// The text is no object.
    pub fn of(text: &'t RawValue) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text.get())
    }

    /// As [`Self::of`]; nothing for what is absent or no object.
    #[must_use]
    pub fn of_optional(text: Option<&'t RawValue>) -> Self {
        text.and_then(|text| Self::of(text).ok())
            .unwrap_or_default()
    }

    /// The text of a member.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut from_last = self.list.iter().rev();
        let (_, value) = from_last.find(|(name, _)| name == key)?;
        Some(value.as_str())
    }

    /// A member that is a string.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        let value = self.get(key)?;
        // Most strings have no escapes and are borrowed.
        match serde_json::from_str::<&str>(value) {
            Ok(plain) => Some(Cow::Borrowed(plain)),
            Err(_escaped) => serde_json::from_str::<String>(value).ok().map(Cow::Owned),
        }
    }

    /// A member that is an object, taken apart.
    #[must_use]
    pub fn object(&self, key: &str) -> Option<Members<'_>> {
        serde_json::from_str(self.get(key)?).ok()
    }

    /// Puts the text of a JSON value in the place of a member, or at the end.
    pub fn set(&mut self, key: &'t str, value: impl Into<Cow<'t, str>>) {
        let value = Text::Set(value.into());
        match self.list.iter_mut().rev().find(|(name, _)| name == key) {
            Some((_, held)) => *held = value,
            None => self.list.push((Cow::Borrowed(key), value)),
        }
    }

    /// Takes a member out, however often it is written.
    pub fn remove(&mut self, key: &str) {
        self.list.retain(|(name, _)| name != key);
    }

    /// Keeps the members whose key fits.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.list.retain(|(name, _)| keep(name));
    }

    /// A key that is written twice.
    #[must_use]
    pub fn twice(&self) -> Option<&str> {
        let mut names = self.list.iter().map(|(name, _)| &**name).enumerate();
        if self.list.len() <= FEW {
            let before = |at: usize| self.list.iter().take(at);
            let twice = names.find(|(at, name)| before(*at).any(|(other, _)| other == name));
            return twice.map(|(_, name)| name);
        }
        let mut seen = BTreeSet::new();
        names
            .find(|(_, name)| !seen.insert(*name))
            .map(|(_, name)| name)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Keys and texts in written order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.list
            .iter()
            .map(|(name, value)| (&**name, value.as_str()))
    }

    /// The object as a value of its own.
    #[must_use]
    pub fn to_raw(&self) -> Box<RawValue> {
        // Every part is JSON, so the whole is. Parts that were read are not read again.
        to_raw_value(self).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }
}

impl fmt::Display for Members<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        for (at, (name, value)) in self.iter().enumerate() {
            if at > 0 {
                f.write_char(',')?;
            }
            let plain = name
                .bytes()
                .all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
            if plain {
                write!(f, "\"{name}\":{value}")?;
            } else {
                let name = serde_json::Value::from(name);
                write!(f, "{name}:{value}")?;
            }
        }
        f.write_char('}')
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(self.list.len()))?;
        for (name, value) in &self.list {
            match value {
                Text::Read(raw) => members.serialize_entry(&**name, raw)?,
                Text::Set(text) => {
                    let raw: &RawValue = serde_json::from_str(text).map_err(S::Error::custom)?;
                    members.serialize_entry(&**name, raw)?;
                }
            }
        }
        members.end()
    }
}

impl<'de: 't, 't> Deserialize<'de> for Members<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::with_capacity(members.size_hint().unwrap_or(4));
                while let Some(Name(name)) = members.next_key()? {
                    let value: &'de RawValue = members.next_value()?;
                    list.push((name, Text::Read(value)));
                }
                Ok(Members { list })
            }
        }
        deserializer.deserialize_map(Take)
    }
}

/// A key, borrowed where it has no escapes.
struct Name<'t>(Cow<'t, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn what_is_not_changed_stays_as_written() {
        let text = raw(r#"{ "a" : 1.00, "n\u0061me":"x", "x\"y": [ 1,2 ], "_meta":{"k":1e3}}"#);
        let mut members = Members::of(&text).unwrap();
        assert_eq!(members.text("name").as_deref(), Some("x"));
        members.set("name", r#""server__x""#);
        members.set("new", "null");
        assert_eq!(
            members.to_string(),
            r#"{"a":1.00,"name":"server__x","x\"y":[ 1,2 ],"_meta":{"k":1e3},"new":null}"#
        );
        members.remove("_meta");
        members.retain(|key| key != "x\"y");
        assert_eq!(
            members.to_raw().get(),
            r#"{"a":1.00,"name":"server__x","new":null}"#
        );
    }

    #[test]
    fn the_last_of_two_members_counts() {
        let text = raw(r#"{"a":1,"a":"\u0062"}"#);
        let mut members = Members::of(&text).unwrap();
        assert_eq!(members.text("a").as_deref(), Some("b"));
        members.set("a", "3");
        assert_eq!(members.to_string(), r#"{"a":1,"a":3}"#);
        members.remove("a");
        assert!(members.is_empty());
    }

    #[test]
    fn what_is_no_object_is_told() {
        assert!(Members::of(&raw("[1]")).is_err());
        assert!(Members::of_optional(Some(&raw("1"))).is_empty());
    }
}
