//! What the tools of one server are held to, wherever that is kept.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use thiserror::Error;
use toolwarden_drift::shape::{InvalidShape, Shape};
use toolwarden_model::Fingerprint;
use toolwarden_store::{Baseline, Kept, OldHashes, Server, ServerId, ServerKey, Store, StoreError};

use crate::lock::LockFile;
use crate::observation::{Observation, UnreadableDefinition};

/// The baselines of a server.
#[derive(Debug)]
pub struct Pins<'k> {
    /// The server.
    pub key: ServerKey,
    /// Its place in the store, where it is kept in one.
    pub server: Option<Server>,
    /// Whether anything is known of the server.
    pub known: bool,
    /// Whether its list of tools was pinned as a whole.
    pub sealed: bool,
    /// Whether it was left open on purpose.
    pub open: bool,
    /// What each tool is held to.
    pub tools: BTreeMap<String, Pin>,
    keeper: Keeper<'k>,
}

/// Where texts and approvals come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keeper<'k> {
    Store(&'k Store),
    Lock(&'k LockFile),
}

/// What one tool is held to.
#[derive(Clone, Debug)]
pub struct Pin {
    /// The place of the baseline in the store.
    pub baseline: Option<i64>,
    /// The definition; none while only a hash of it is known.
    pub definition: Option<Kept>,
    /// The shape of its results, as kept.
    shape: Option<String>,
    /// The hashes of the toolwatch program.
    pub old: OldHashes,
    /// The label its user gave it.
    pub version: String,
    /// When it was pinned, where that is known.
    pub at: Option<jiff::Timestamp>,
}

/// Why pins cannot be used.
#[derive(Debug, Error)]
pub enum PinsError {
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A pinned definition cannot be read again.
    #[error("the pinned definition of `{tool}` cannot be read")]
    Definition {
        /// The tool.
        tool: String,
        /// Why.
        source: UnreadableDefinition,
    },
    /// A pinned shape cannot be read again.
    #[error("the pinned shape of `{tool}` cannot be read")]
    Shape {
        /// The tool.
        tool: String,
        /// Why.
        source: InvalidShape,
    },
}

impl<'k> Pins<'k> {
    /// What the store holds the tools of a server to.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn of_store(store: &'k Store, key: &ServerKey) -> Result<Self, StoreError> {
        Self::read_from(store, key, |server| store.baselines(server))
    }

    /// What the store holds some tools of a server to, however many others there are.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn of_tools<'n>(
        store: &'k Store,
        key: &ServerKey,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self, StoreError> {
        Self::read_from(store, key, |server| {
            let names = names.into_iter();
            let found = names.map(|name| store.baseline(server, name));
            found.filter_map(Result::transpose).collect()
        })
    }

    fn read_from(
        store: &'k Store,
        key: &ServerKey,
        baselines: impl FnOnce(ServerId) -> Result<Vec<Baseline>, StoreError>,
    ) -> Result<Self, StoreError> {
        let server = store.server(key)?;
        let baselines = match &server {
            Some(server) => baselines(server.id)?,
            None => Vec::new(),
        };
        let pins = baselines.into_iter().map(|baseline| {
            let pin = Pin {
                baseline: Some(baseline.id),
                definition: baseline.definition,
                shape: baseline.shape,
                old: baseline.old,
                version: baseline.version,
                at: Some(baseline.approval.at),
            };
            (baseline.tool, pin)
        });
        Ok(Self {
            key: key.clone(),
            known: server.is_some(),
            sealed: server.as_ref().is_some_and(|server| server.sealed),
            open: server.as_ref().is_some_and(|server| server.open),
            server,
            tools: pins.collect(),
            keeper: Keeper::Store(store),
        })
    }

    /// What a lock file holds the tools of a server to.
    #[must_use]
    pub fn of_lock(lock: &'k LockFile, key: &ServerKey) -> Self {
        let server = lock.servers.get(key);
        let tools = server.into_iter().flat_map(|server| &server.tools);
        let pins = tools.map(|(name, tool)| {
            let pin = Pin {
                baseline: None,
                definition: Some(tool.kept),
                shape: tool.shape.as_ref().map(ToString::to_string),
                old: OldHashes::default(),
                version: tool.version.clone(),
                at: tool.approval.as_ref().map(|approval| approval.at),
            };
            (name.clone(), pin)
        });
        Self {
            key: key.clone(),
            server: None,
            known: server.is_some(),
            sealed: server.is_some_and(|server| server.sealed),
            // A lock file says of every server whether it is sealed.
            open: server.is_some_and(|server| !server.sealed),
            tools: pins.collect(),
            keeper: Keeper::Lock(lock),
        }
    }

    /// Keeps the pins of some tools only.
    pub fn retain(&mut self, names: &[String]) {
        let names: BTreeSet<&String> = names.iter().collect();
        self.tools.retain(|name, _| names.contains(name));
    }

    /// The tool a text defines, if it is held to exactly this text.
    #[must_use]
    pub fn holds(&self, text: &str) -> Option<&str> {
        let name = quick_name(text)?;
        let (name, pin) = self.tools.get_key_value(name.as_ref())?;
        let kept = pin.definition?;
        (kept.fingerprint == Fingerprint::of_wire(text)).then_some(name.as_str())
    }

    /// The pinned definition of a tool, where more than its hash is known.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn observation(&self, name: &str) -> Result<Option<Observation>, PinsError> {
        let Some(kept) = self.tools.get(name).and_then(|pin| pin.definition) else {
            return Ok(None);
        };
        self.read(name, kept).map(Some)
    }

    pub(crate) fn read(&self, name: &str, kept: Kept) -> Result<Observation, PinsError> {
        let text = match self.keeper {
            Keeper::Store(store) => Cow::Owned(store.definition(kept.fingerprint)?),
            Keeper::Lock(lock) => {
                let server = lock.servers.get(&self.key);
                let tool = server.and_then(|server| server.tools.get(name));
                Cow::Borrowed(tool.map_or("", |tool| &*tool.text))
            }
        };
        let read = Observation::read(name, kept.format, &text);
        read.map_err(|source| PinsError::Definition {
            tool: name.to_owned(),
            source,
        })
    }

    /// The pinned shape of a tool's results.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn shape(&self, name: &str) -> Result<Option<Shape>, PinsError> {
        let Some(text) = self.tools.get(name).and_then(|pin| pin.shape.as_deref()) else {
            return Ok(None);
        };
        let read = serde_json::from_str(text)
            .map_err(|_| InvalidShape::Version)
            .and_then(|json| Shape::from_json(&json));
        read.map(Some).map_err(|source| PinsError::Shape {
            tool: name.to_owned(),
            source,
        })
    }

    pub(crate) const fn store(&self) -> Option<&'k Store> {
        match self.keeper {
            Keeper::Store(store) => Some(store),
            Keeper::Lock(_) => None,
        }
    }
}

impl Pin {
    /// The shape of the results as it is kept.
    #[must_use]
    pub fn kept_shape(&self) -> Option<&str> {
        self.shape.as_deref()
    }
}

/// The first name in a definition, where it stands in one of the usual places. Nothing is built, and
/// nothing is read beyond it.
fn quick_name(text: &str) -> Option<Cow<'_, str>> {
    struct Find<'f, 'n>(&'f mut Option<Cow<'n, str>>);

    impl<'n> Visitor<'n> for Find<'_, 'n> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a definition")
        }

        fn visit_map<A: MapAccess<'n>>(self, mut members: A) -> Result<(), A::Error> {
            while let Some(key) = members.next_key::<Cow<'n, str>>()? {
                match key.as_ref() {
                    "name" => {
                        *self.0 = Some(members.next_value()?);
                        return Ok(());
                    }
                    "function" => return members.next_value_seed(Find(self.0)),
                    _ => {
                        members.next_value::<IgnoredAny>()?;
                    }
                }
            }
            Ok(())
        }
    }

    impl<'n> DeserializeSeed<'n> for Find<'_, 'n> {
        type Value = ();

        fn deserialize<D: Deserializer<'n>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_map(self)
        }
    }

    let mut name = None;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // What stands after the name is left unread, which is an error nobody minds.
    let _unread = Find(&mut name).deserialize(&mut deserializer);
    name
}
