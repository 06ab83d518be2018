//! The pins of the tools of one server, from the store or a lock file.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use thiserror::Error;
use toolwarden_drift::shape::{InvalidShape, Shape};
use toolwarden_model::Fingerprint;
use toolwarden_store::{
    Baseline, Server, ServerId, ServerKey, Store, StoreError, StoredDefinition, ToolwatchHashes,
};

use crate::lock::LockFile;
use crate::observation::{Observation, UnreadableDefinition};

/// The baselines of a server.
#[derive(Debug)]
pub struct Pins<'k> {
    /// The server.
    pub key: ServerKey,
    /// Its entry in the store, if it has one.
    pub server: Option<Server>,
    /// Whether the server is known.
    pub known: bool,
    /// Whether its list of tools was pinned as a whole.
    pub sealed: bool,
    /// Whether it was left unsealed on purpose.
    pub open: bool,
    /// The pin of each tool.
    pub tools: BTreeMap<String, Pin>,
    storage: PinStorage<'k>,
}

/// The source of texts and approvals.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PinStorage<'k> {
    Store(&'k Store),
    Lock(&'k LockFile),
}

/// The pin of one tool.
#[derive(Clone, Debug)]
pub struct Pin {
    /// The id of the baseline in the store.
    pub baseline: Option<i64>,
    /// The definition; `None` if only its hash is known.
    pub definition: Option<StoredDefinition>,
    /// The stored shape of its results.
    shape: Option<String>,
    /// The hashes of the toolwatch program.
    pub old: ToolwatchHashes,
    /// The version label that its user gave it.
    pub version: String,
    /// When it was pinned, if known.
    pub at: Option<jiff::Timestamp>,
}

/// Why pins cannot be used.
#[derive(Debug, Error)]
pub enum PinsError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A pinned definition cannot be parsed again.
    #[error("the pinned definition of `{tool}` cannot be read")]
    Definition {
        /// The tool.
        tool: String,
        /// Why.
        source: UnreadableDefinition,
    },
    /// A pinned shape cannot be parsed again.
    #[error("the pinned shape of `{tool}` cannot be read")]
    Shape {
        /// The tool.
        tool: String,
        /// Why.
        source: InvalidShape,
    },
}

impl<'k> Pins<'k> {
    /// The pins of a server's tools in the store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn from_store(store: &'k Store, key: &ServerKey) -> Result<Self, StoreError> {
        Self::read_from(store, key, |server| store.baselines(server))
    }

    /// The pins of some tools of a server in the store, without loading the others.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn from_store_for_tools<'n>(
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
            storage: PinStorage::Store(store),
        })
    }

    /// The pins of a server's tools in a lock file.
    #[must_use]
    pub fn from_lock(lock: &'k LockFile, key: &ServerKey) -> Self {
        let server = lock.servers.get(key);
        let tools = server.into_iter().flat_map(|server| &server.tools);
        let pins = tools.map(|(name, tool)| {
            let pin = Pin {
                baseline: None,
                definition: Some(tool.kept),
                shape: tool.shape.as_ref().map(ToString::to_string),
                old: ToolwatchHashes::default(),
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
            // A lock file states for every server whether it is sealed.
            open: server.is_some_and(|server| !server.sealed),
            tools: pins.collect(),
            storage: PinStorage::Lock(lock),
        }
    }

    /// Keeps only the pins of some tools.
    pub fn retain(&mut self, names: &[String]) {
        let names: BTreeSet<&String> = names.iter().collect();
        self.tools.retain(|name, _| names.contains(name));
    }

    /// The tool that a text defines, if its pin has exactly this text.
    #[must_use]
    pub fn match_exact(&self, text: &str) -> Option<&str> {
        let name = scan_name(text)?;
        let (name, pin) = self.tools.get_key_value(name.as_ref())?;
        let kept = pin.definition?;
        (kept.fingerprint == Fingerprint::of_wire(text)).then_some(name.as_str())
    }

    /// The pinned definition of a tool, if more than its hash is known.
    ///
    /// # Errors
    /// It cannot be parsed.
    pub fn observation(&self, name: &str) -> Result<Option<Observation>, PinsError> {
        let Some(kept) = self.tools.get(name).and_then(|pin| pin.definition) else {
            return Ok(None);
        };
        self.read_definition(name, kept).map(Some)
    }

    pub(crate) fn read_definition(
        &self,
        name: &str,
        kept: StoredDefinition,
    ) -> Result<Observation, PinsError> {
        let text = match self.storage {
            PinStorage::Store(store) => Cow::Owned(store.definition(kept.fingerprint)?),
            PinStorage::Lock(lock) => {
                let server = lock.servers.get(&self.key);
                let tool = server.and_then(|server| server.tools.get(name));
                Cow::Borrowed(tool.map_or("", |tool| &*tool.text))
            }
        };
        let read = Observation::parse(name, kept.format, &text);
        read.map_err(|source| PinsError::Definition {
            tool: name.to_owned(),
            source,
        })
    }

    /// The pinned shape of a tool's results.
    ///
    /// # Errors
    /// It cannot be parsed.
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
        match self.storage {
            PinStorage::Store(store) => Some(store),
            PinStorage::Lock(_) => None,
        }
    }
}

impl Pin {
    /// The stored shape of the results.
    #[must_use]
    pub fn stored_shape(&self) -> Option<&str> {
        self.shape.as_deref()
    }
}

/// The first name in a definition, if it is in one of the usual places. It builds no value, and stops after
/// the name.
fn scan_name(text: &str) -> Option<Cow<'_, str>> {
    struct NameVisitor<'f, 'n>(&'f mut Option<Cow<'n, str>>);

    impl<'n> Visitor<'n> for NameVisitor<'_, 'n> {
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
                    "function" => return members.next_value_seed(NameVisitor(self.0)),
                    _ => {
                        members.next_value::<IgnoredAny>()?;
                    }
                }
            }
            Ok(())
        }
    }

    impl<'n> DeserializeSeed<'n> for NameVisitor<'_, 'n> {
        type Value = ();

        fn deserialize<D: Deserializer<'n>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_map(self)
        }
    }

    let mut name = None;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // The text after the name is not read, which gives an error that is ignored.
    let _unread = NameVisitor(&mut name).deserialize(&mut deserializer);
    name
}
