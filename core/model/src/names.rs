//! The names that the guard and the gateway decide by: servers and their tools, groups and states. A tool has two
//! names behind a gateway, which must not be confused: the one that agents use, and the one that its server uses.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Serialize, Serializer};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident($text:ty)) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name($text);

        impl $name {
            /// Says that a text is such a name.
            #[must_use]
            pub fn new(name: impl Into<Arc<str>>) -> Self {
                Self(name.into().into())
            }

            /// The text of the name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                self.0.as_ref()
            }
        }

        // Maps can be searched by text; the order and the hash are those of the text.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.as_str() == other.as_str()
            }
        }

        impl Eq for $name {}

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.as_str().cmp(other.as_str())
            }
        }

        impl Hash for $name {
            fn hash<H: Hasher>(&self, hasher: &mut H) {
                self.as_str().hash(hasher);
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }
    };
}

/// Names of servers and tools are always read or received, and shared.
macro_rules! shared_name {
    ($(#[$doc:meta])* $name:ident) => {
        name! { $(#[$doc])* $name(Arc<str>) }

        impl $name {
            /// The text of the name, shared.
            #[must_use]
            pub const fn as_arc(&self) -> &Arc<str> {
                &self.0
            }
        }
    };
}

/// The program itself knows some names, such as the group `default`.
macro_rules! known_name {
    ($(#[$doc:meta])* $name:ident) => {
        name! { $(#[$doc])* $name(NameText) }

        impl $name {
            /// A name that the program itself knows.
            #[must_use]
            pub const fn from_static(name: &'static str) -> Self {
                Self(NameText::Static(name))
            }
        }
    };
}

#[derive(Clone)]
enum NameText {
    Static(&'static str),
    Shared(Arc<str>),
}

impl AsRef<str> for NameText {
    fn as_ref(&self) -> &str {
        match self {
            Self::Static(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl From<Arc<str>> for NameText {
    fn from(text: Arc<str>) -> Self {
        Self::Shared(text)
    }
}

shared_name! {
    /// The name of a server in the settings.
    ServerName
}

shared_name! {
    /// The name by which agents know a tool or prompt. The gateway may prefix it with the name of the server.
    ///
    /// It is not the name that the server knows:
    ///
    /// ```compile_fail
    /// use toolwarden_model::{ExposedName, OwnName};
    /// fn call_server(_tool: &OwnName) {}
    /// call_server(&ExposedName::new("bank__pay"));
    /// ```
    ///
    /// ```
    /// use toolwarden_model::OwnName;
    /// fn call_server(_tool: &OwnName) {}
    /// call_server(&OwnName::new("pay"));
    /// ```
    ExposedName
}

shared_name! {
    /// The name that a server gives its own tool or prompt.
    OwnName
}

known_name! {
    /// The name of a group of tools. `*` in a request or a grant stands for every group.
    ///
    /// ```compile_fail
    /// use toolwarden_model::{GroupName, StateName};
    /// fn request(_group: &GroupName) {}
    /// request(&StateName::new("default"));
    /// ```
    ///
    /// ```
    /// use toolwarden_model::GroupName;
    /// fn request(_group: &GroupName) {}
    /// request(&GroupName::new("default"));
    /// ```
    GroupName
}

known_name! {
    /// The name of a state that a session is in.
    ///
    /// ```compile_fail
    /// use toolwarden_model::{GroupName, StateName};
    /// fn enter(_state: &StateName) {}
    /// enter(&GroupName::new("reviewed"));
    /// ```
    ///
    /// ```
    /// use toolwarden_model::StateName;
    /// fn enter(_state: &StateName) {}
    /// enter(&StateName::new("reviewed"));
    /// ```
    StateName
}
