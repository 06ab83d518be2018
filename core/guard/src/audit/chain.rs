use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use thiserror::Error;
use toolwarden_model::{Fingerprint, InvalidFingerprint};

/// The content of one audit record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordContent {
    /// The time of the event, in milliseconds since 1970.
    pub at_ms: i64,
    /// The kind of record: `decision`, `outcome`, `transition`, `session`, `checkpoint`, …
    pub kind: Cow<'static, str>,
    /// The principal that the record is about.
    pub principal: Option<Arc<str>>,
    /// The tool that the record is about.
    pub tool: Option<Arc<str>>,
    /// The session that the record is about.
    pub session: Option<Arc<str>>,
    /// The reason code.
    pub code: Cow<'static, str>,
    /// Whether the request was allowed; `None` if the record is not about a request.
    pub allowed: Option<bool>,
    /// All other fields, as canonical JSON.
    pub body: String,
}

impl RecordContent {
    /// Borrows the content.
    #[must_use]
    pub fn borrow(&self) -> RecordContentRef<'_> {
        RecordContentRef {
            at_ms: self.at_ms,
            kind: &self.kind,
            principal: self.principal.as_deref(),
            tool: self.tool.as_deref(),
            session: self.session.as_deref(),
            code: &self.code,
            allowed: self.allowed,
            body: &self.body,
        }
    }
}

/// The content of one record, borrowed; see [`RecordContent`] for the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of Content")]
pub struct RecordContentRef<'c> {
    pub at_ms: i64,
    pub kind: &'c str,
    pub principal: Option<&'c str>,
    pub tool: Option<&'c str>,
    pub session: Option<&'c str>,
    pub code: &'c str,
    pub allowed: Option<bool>,
    pub body: &'c str,
}

/// A record's place in the chain and its hash, written `SEQ:HASH`. The head of a log is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// The number of the record; the first is 1.
    pub seq: u64,
    /// The hash of the record, and so of everything before it.
    pub hash: Fingerprint,
}

impl ChainLink {
    /// The link before the first record.
    pub const GENESIS: Self = Self {
        seq: 0,
        hash: Fingerprint::from_bytes([0; 32]),
    };

    /// The link of the next record, given its content.
    #[must_use]
    pub fn next(&self, content: RecordContentRef<'_>) -> Self {
        let seq = self.seq.saturating_add(1);
        let hash = record_hash(&self.hash, seq, content);
        Self { seq, hash }
    }
}

impl fmt::Display for ChainLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

/// Why a text is not a link.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidChainLink {
    /// The text before the colon is not a number.
    #[error("`{0}` is not a record number, a colon and a hash")]
    Number(String),
    /// The text after the colon is not a hash.
    #[error(transparent)]
    Hash(#[from] InvalidFingerprint),
}

impl FromStr for ChainLink {
    type Err = InvalidChainLink;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(':');
        let parts = parts.and_then(|(seq, hash)| Some((seq.parse().ok()?, hash)));
        let (seq, hash) = parts.ok_or_else(|| InvalidChainLink::Number(text.to_owned()))?;
        let hash = hash.parse()?;
        Ok(Self { seq, hash })
    }
}

const TAG: &[u8; 19] = b"toolwarden/audit/v1";

/// The hash of a record: it covers the previous hash, the record's number and every column.
///
/// All fixed-length parts come first, including the lengths of the texts, and then the texts. So no two
/// records share an encoding.
#[must_use]
pub fn record_hash(previous: &Fingerprint, seq: u64, content: RecordContentRef<'_>) -> Fingerprint {
    let RecordContentRef {
        at_ms,
        kind,
        principal,
        tool,
        session,
        code,
        allowed,
        body,
    } = content;
    let texts = [Some(kind), principal, tool, session, Some(code), Some(body)];
    let mut digest = Sha256::new();
    digest.update(TAG);
    digest.update(previous.as_bytes());
    digest.update(seq.to_be_bytes());
    digest.update(at_ms.to_be_bytes());
    digest.update([match allowed {
        None => 0,
        Some(false) => 1,
        Some(true) => 2,
    }]);
    let lengths = texts.map(|text| {
        text.map_or(u64::MAX, |text| text.len() as u64)
            .to_be_bytes()
    });
    digest.update(lengths.as_flattened());
    for text in texts.into_iter().flatten() {
        digest.update(text);
    }
    Fingerprint::from_bytes(digest.finalize().into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const PLAIN: RecordContentRef<'_> = RecordContentRef {
        at_ms: 1_790_000_000_000,
        kind: "decision",
        principal: Some("ada"),
        tool: Some("files/read"),
        session: Some("s-1"),
        code: "allowed",
        allowed: Some(true),
        body: "{}",
    };

    #[test]
    fn the_encoding_is_the_one_that_was_released() {
        assert_eq!(
            ChainLink::GENESIS.next(PLAIN).to_string(),
            "1:09fb0f36b817604171d6afdf01a505f770da71126a811e51a5374ba7d435e252"
        );
    }

    #[test]
    fn every_column_and_every_place_counts() {
        let before = Fingerprint::of_canonical("before");
        let contents = [
            PLAIN,
            RecordContentRef { at_ms: 0, ..PLAIN },
            RecordContentRef { kind: "", ..PLAIN },
            RecordContentRef {
                principal: None,
                ..PLAIN
            },
            RecordContentRef {
                principal: Some(""),
                ..PLAIN
            },
            RecordContentRef {
                principal: Some("adafiles/read"),
                tool: Some(""),
                ..PLAIN
            },
            RecordContentRef {
                principal: Some("adafiles/read"),
                tool: None,
                ..PLAIN
            },
            RecordContentRef {
                principal: Some("adaf"),
                tool: Some("iles/read"),
                ..PLAIN
            },
            RecordContentRef {
                tool: None,
                session: Some("files/reads-1"),
                ..PLAIN
            },
            RecordContentRef {
                session: None,
                ..PLAIN
            },
            RecordContentRef {
                session: None,
                code: "s-1allowed",
                ..PLAIN
            },
            RecordContentRef {
                code: "allowed{",
                body: "}",
                ..PLAIN
            },
            RecordContentRef {
                allowed: None,
                ..PLAIN
            },
            RecordContentRef {
                allowed: Some(false),
                ..PLAIN
            },
            RecordContentRef {
                body: "{} ",
                ..PLAIN
            },
        ];
        let mut hashes: Vec<_> = contents.map(|it| record_hash(&before, 7, it)).to_vec();
        hashes.push(record_hash(&before, 8, PLAIN));
        hashes.push(record_hash(&ChainLink::GENESIS.hash, 7, PLAIN));
        let count = hashes.len();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
    }

    #[test]
    fn links_are_read_as_they_are_written() {
        let written = ChainLink::GENESIS.next(PLAIN);
        assert_eq!(written.to_string().parse(), Ok(written));
        for text in ["", "1", ":", "x:00", "-1:00"] {
            assert_eq!(
                text.parse::<ChainLink>(),
                Err(InvalidChainLink::Number(text.to_owned()))
            );
        }
        let told = "1:00".parse::<ChainLink>().unwrap_err().to_string();
        assert_eq!(told, "`00` is not 64 hexadecimal digits");
    }

    /// Short texts over few letters, so that different fields often have equal texts.
    fn text() -> impl Strategy<Value = String> {
        "[ab]{0,3}"
    }

    proptest! {
        #[test]
        fn no_two_contents_share_a_hash(
            rows in prop::collection::vec(
                (0..2_i64, text(), [prop::option::of(text()), prop::option::of(text()), prop::option::of(text())], text(), prop::option::of(any::<bool>()), text()),
                64,
            )
        ) {
            let mut seen = BTreeMap::new();
            for row in rows {
                let (at_ms, kind, [principal, tool, session], code, allowed, body) = &row;
                let content = RecordContentRef {
                    at_ms: *at_ms,
                    kind,
                    principal: principal.as_deref(),
                    tool: tool.as_deref(),
                    session: session.as_deref(),
                    code,
                    allowed: *allowed,
                    body,
                };
                let hash = ChainLink::GENESIS.next(content).hash;
                let first = seen.entry(hash).or_insert_with(|| row.clone());
                prop_assert_eq!(first, &row);
            }
        }
    }
}
