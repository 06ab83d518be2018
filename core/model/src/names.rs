//! The names of servers and their tools. A tool has two names behind a gateway, which must not be confused: the one
//! that agents use, and the one that its server uses.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Says that a text is such a name.
            #[must_use]
            pub fn new(name: impl Into<Arc<str>>) -> Self {
                Self(name.into())
            }

            /// The text of the name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text of the name, shared.
            #[must_use]
            pub const fn as_arc(&self) -> &Arc<str> {
                &self.0
            }
        }

        // Maps can be searched by text; the order and the hash are those of the text.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

name! {
    /// The name of a server in the settings.
    ServerName
}

name! {
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

name! {
    /// The name that a server gives its own tool or prompt.
    OwnName
}
