use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::json::{
    Member, Object, Value, sort_members, write_canonical, write_canonical_object,
    write_canonical_text,
};

/// A JSON document of borrowed parts, so that writing a tool copies nothing.
#[derive(Debug)]
pub(super) enum DocumentNode<'a> {
    Null,
    Bool(bool),
    Text(&'a str),
    Words(Vec<&'a str>),
    Items(&'a [Value]),
    Object(&'a Object),
    Owned(Value),
    Members(Vec<(&'a str, Self)>),
}

impl Serialize for DocumentNode<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(flag) => serializer.serialize_bool(*flag),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Words(words) => serializer.collect_seq(words),
            Self::Items(items) => serializer.collect_seq(*items),
            Self::Object(object) => object.serialize(serializer),
            Self::Owned(value) => value.serialize(serializer),
            Self::Members(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl DocumentNode<'_> {
    pub(super) fn write_canonical(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Self::Text(text) => write_canonical_text(out, text),
            Self::Words(words) => {
                write_list(out, words, |out, word| write_canonical_text(out, word));
            }
            Self::Items(items) => write_list(out, items, write_canonical),
            Self::Object(object) => write_canonical_object(out, object),
            Self::Owned(value) => write_canonical(out, value),
            Self::Members(members) => {
                let mut members: Vec<Member<'_, &Self>> = members
                    .iter()
                    .map(|(key, node)| Member::new(key, node))
                    .collect();
                sort_members(&mut members);
                out.push('{');
                for (
                    at,
                    Member {
                        key, value: node, ..
                    },
                ) in members.into_iter().enumerate()
                {
                    if at > 0 {
                        out.push(',');
                    }
                    write_canonical_text(out, key);
                    out.push(':');
                    node.write_canonical(out);
                }
                out.push('}');
            }
        }
    }
}

fn write_list<T>(out: &mut String, items: &[T], write: impl Fn(&mut String, &T)) {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}
