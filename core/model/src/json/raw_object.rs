//! Objects parsed one level deep, so that single members can be changed while all others keep their
//! exact text.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap as _, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// Up to this many keys, comparing all pairs is faster than sorting.
const LINEAR_SEARCH_MAX: usize = 8;

/// The members of one object in written order, values as text. A duplicate key appears twice;
/// [`RawObject::get`] returns the last, as JSON readers do.
#[derive(Clone, Debug, Default)]
pub struct RawObject<'t> {
    members: Vec<(Cow<'t, str>, MemberText<'t>)>,
}

/// The text of a member.
#[derive(Clone, Debug)]
enum MemberText<'t> {
    /// Text that was parsed, so it is known to be JSON.
    Read(&'t RawValue),
    /// Text set by the caller.
    Set(Cow<'t, str>),
}

impl MemberText<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::Read(raw) => raw.get(),
            Self::Set(text) => text,
        }
    }
}

impl<'t> RawObject<'t> {
    /// Parses an object one level deep.
    ///
    /// # Errors
    /// The text is not an object.
    pub fn parse(text: &'t RawValue) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text.get())
    }

    /// Like [`Self::parse`]; empty if the text is absent or not an object.
    #[must_use]
    pub fn parse_optional(text: Option<&'t RawValue>) -> Self {
        text.and_then(|text| Self::parse(text).ok())
            .unwrap_or_default()
    }

    /// The text of a member.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut from_last = self.members.iter().rev();
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

    /// A member that is an object, parsed one level deep.
    #[must_use]
    pub fn object(&self, key: &str) -> Option<RawObject<'_>> {
        serde_json::from_str(self.get(key)?).ok()
    }

    /// The text of a member as it was read: it borrows from the text, not from this object. `None` if the member was
    /// set since.
    #[must_use]
    pub fn received(&self, key: &str) -> Option<&'t str> {
        let mut from_last = self.members.iter().rev();
        match from_last.find(|(name, _)| name == key)? {
            (_, MemberText::Read(text)) => Some(text.get()),
            (_, MemberText::Set(_)) => None,
        }
    }

    /// Like [`Self::received`], for a member that is an object, parsed one level deep.
    #[must_use]
    pub fn received_object(&self, key: &str) -> Option<Self> {
        serde_json::from_str(self.received(key)?).ok()
    }

    /// Replaces the text of a member, or appends the member.
    pub fn set(&mut self, key: &'t str, value: impl Into<Cow<'t, str>>) {
        let value = MemberText::Set(value.into());
        match self.members.iter_mut().rev().find(|(name, _)| name == key) {
            Some((_, held)) => *held = value,
            None => self.members.push((Cow::Borrowed(key), value)),
        }
    }

    /// Removes a member with all its duplicates.
    pub fn remove(&mut self, key: &str) {
        self.members.retain(|(name, _)| name != key);
    }

    /// Keeps the members whose key satisfies the predicate.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.members.retain(|(name, _)| keep(name));
    }

    /// A duplicate key.
    #[must_use]
    pub fn duplicate_key(&self) -> Option<&str> {
        let mut names = self.members.iter().map(|(name, _)| &**name).enumerate();
        if self.members.len() <= LINEAR_SEARCH_MAX {
            let before = |at: usize| self.members.iter().take(at);
            let twice = names.find(|(at, name)| before(*at).any(|(other, _)| other == name));
            return twice.map(|(_, name)| name);
        }
        let mut seen = BTreeSet::new();
        names
            .find(|(_, name)| !seen.insert(*name))
            .map(|(_, name)| name)
    }

    /// The text these members were read from, without the keys of its `_meta` that begin with
    /// `private`, and with the string of one member replaced. Text that needs no change is
    /// borrowed.
    #[must_use]
    pub fn forwarded(
        &self,
        text: &'t RawValue,
        meta: Option<&RawObject<'_>>,
        private: &str,
        change: Option<(&'t str, &str)>,
    ) -> Cow<'t, RawValue> {
        let is_private =
            |meta: &&RawObject<'_>| meta.iter().any(|(key, _)| key.starts_with(private));
        let meta = meta.filter(is_private).map(|meta| {
            let mut meta = meta.clone();
            meta.retain(|key| !key.starts_with(private));
            meta.to_string()
        });
        if meta.is_none() && change.is_none() {
            return Cow::Borrowed(text);
        }
        let mut members = self.clone();
        match meta {
            Some(meta) if meta == "{}" => members.remove("_meta"),
            Some(meta) => members.set("_meta", meta),
            None => {}
        }
        if let Some((key, value)) = change {
            members.set(key, serde_json::Value::from(value).to_string());
        }
        Cow::Owned(members.to_raw())
    }

    /// Whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Keys and value texts in written order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members
            .iter()
            .map(|(name, value)| (&**name, value.as_str()))
    }

    /// The object as an owned value.
    #[must_use]
    pub fn to_raw(&self) -> Box<RawValue> {
        // Every part is JSON, so the whole is. Parsed parts are not parsed again.
        to_raw_value(self).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }
}

impl fmt::Display for RawObject<'_> {
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

impl Serialize for RawObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(self.members.len()))?;
        for (name, value) in &self.members {
            match value {
                MemberText::Read(raw) => members.serialize_entry(&**name, raw)?,
                MemberText::Set(text) => {
                    let raw: &RawValue = serde_json::from_str(text).map_err(S::Error::custom)?;
                    members.serialize_entry(&**name, raw)?;
                }
            }
        }
        members.end()
    }
}

impl<'de: 't, 't> Deserialize<'de> for RawObject<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = RawObject<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::with_capacity(members.size_hint().unwrap_or(4));
                while let Some(Name(name)) = members.next_key()? {
                    let value: &'de RawValue = members.next_value()?;
                    list.push((name, MemberText::Read(value)));
                }
                Ok(RawObject { members: list })
            }
        }
        deserializer.deserialize_map(Take)
    }
}

/// A key, borrowed if it has no escapes.
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
        let mut members = RawObject::parse(&text).unwrap();
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
        let mut members = RawObject::parse(&text).unwrap();
        assert_eq!(members.text("a").as_deref(), Some("b"));
        members.set("a", "3");
        assert_eq!(members.to_string(), r#"{"a":1,"a":3}"#);
        members.remove("a");
        assert!(members.is_empty());
    }

    #[test]
    fn non_objects_are_rejected() {
        assert!(RawObject::parse(&raw("[1]")).is_err());
        assert!(RawObject::parse_optional(Some(&raw("1"))).is_empty());
    }
}
