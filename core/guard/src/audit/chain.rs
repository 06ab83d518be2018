use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use thiserror::Error;
use toolwarden_model::{Fingerprint, InvalidFingerprint};

/// What one record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// What it is about: `decision`, `outcome`, `transition`, `session`, `checkpoint`, …
    pub kind: Cow<'static, str>,
    /// Whom it is about.
    pub principal: Option<Arc<str>>,
    /// The tool it is about.
    pub tool: Option<Arc<str>>,
    /// The session it is about.
    pub session: Option<Arc<str>>,
    /// The reason code.
    pub code: Cow<'static, str>,
    /// Whether something was allowed; none where nothing was asked.
    pub allowed: Option<bool>,
    /// All the rest, as canonical JSON.
    pub body: String,
}

impl Content {
    /// The same without owning it.
    #[must_use]
    pub fn borrow(&self) -> ContentRef<'_> {
        ContentRef {
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

/// What one record says, borrowed; see [`Content`] for the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of Content")]
pub struct ContentRef<'c> {
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
pub struct Link {
    /// The number of the record; the first is 1.
    pub seq: u64,
    /// The hash of the record, and so of everything before it.
    pub hash: Fingerprint,
}

impl Link {
    /// What the first record is tied to.
    pub const GENESIS: Self = Self {
        seq: 0,
        hash: Fingerprint::from_bytes([0; 32]),
    };

    /// The place of the record that comes next and says this.
    #[must_use]
    pub fn next(&self, content: ContentRef<'_>) -> Self {
        let seq = self.seq.saturating_add(1);
        let hash = link(&self.hash, seq, content);
        Self { seq, hash }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

/// A text that is no link.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidLink {
    /// There is no number before a colon.
    #[error("`{0}` is not a record number, a colon and a hash")]
    Number(String),
    /// What follows the colon is no hash.
    #[error(transparent)]
    Hash(#[from] InvalidFingerprint),
}

impl FromStr for Link {
    type Err = InvalidLink;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(':');
        let parts = parts.and_then(|(seq, hash)| Some((seq.parse().ok()?, hash)));
        let (seq, hash) = parts.ok_or_else(|| InvalidLink::Number(text.to_owned()))?;
        let hash = hash.parse()?;
        Ok(Self { seq, hash })
    }
}

const TAG: &[u8; 19] = b"toolwarden/audit/v1";

/// The hash of a record: of the hash before, its number and every column.
///
/// Everything of a known length comes first, the lengths of the texts among it, and then the texts;
/// so no two records share an encoding.
#[must_use]
pub fn link(previous: &Fingerprint, seq: u64, content: ContentRef<'_>) -> Fingerprint {
    let ContentRef {
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

    const PLAIN: ContentRef<'_> = ContentRef {
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
            Link::GENESIS.next(PLAIN).to_string(),
            "1:09fb0f36b817604171d6afdf01a505f770da71126a811e51a5374ba7d435e252"
        );
    }

    #[test]
    fn every_column_and_every_place_counts() {
        let before = Fingerprint::of_canonical("before");
        let contents = [
            PLAIN,
            ContentRef { at_ms: 0, ..PLAIN },
            ContentRef { kind: "", ..PLAIN },
            ContentRef {
                principal: None,
                ..PLAIN
            },
            ContentRef {
                principal: Some(""),
                ..PLAIN
            },
            ContentRef {
                principal: Some("adafiles/read"),
                tool: Some(""),
                ..PLAIN
            },
            ContentRef {
                principal: Some("adafiles/read"),
                tool: None,
                ..PLAIN
            },
            ContentRef {
                principal: Some("adaf"),
                tool: Some("iles/read"),
                ..PLAIN
            },
            ContentRef {
                tool: None,
                session: Some("files/reads-1"),
                ..PLAIN
            },
            ContentRef {
                session: None,
                ..PLAIN
            },
            ContentRef {
                session: None,
                code: "s-1allowed",
                ..PLAIN
            },
            ContentRef {
                code: "allowed{",
                body: "}",
                ..PLAIN
            },
            ContentRef {
                allowed: None,
                ..PLAIN
            },
            ContentRef {
                allowed: Some(false),
                ..PLAIN
            },
            ContentRef {
                body: "{} ",
                ..PLAIN
            },
        ];
        let mut hashes: Vec<_> = contents.map(|it| link(&before, 7, it)).to_vec();
        hashes.push(link(&before, 8, PLAIN));
        hashes.push(link(&Link::GENESIS.hash, 7, PLAIN));
        let count = hashes.len();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
    }

    #[test]
    fn links_are_read_as_they_are_written() {
        let written = Link::GENESIS.next(PLAIN);
        assert_eq!(written.to_string().parse(), Ok(written));
        for text in ["", "1", ":", "x:00", "-1:00"] {
            assert_eq!(
                text.parse::<Link>(),
                Err(InvalidLink::Number(text.to_owned()))
            );
        }
        let told = "1:00".parse::<Link>().unwrap_err().to_string();
        assert_eq!(told, "`00` is not 64 hexadecimal digits");
    }

    /// Short texts over few letters, so that they run into each other often.
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
                let content = ContentRef {
                    at_ms: *at_ms,
                    kind,
                    principal: principal.as_deref(),
                    tool: tool.as_deref(),
                    session: session.as_deref(),
                    code,
                    allowed: *allowed,
                    body,
                };
                let hash = Link::GENESIS.next(content).hash;
                let first = seen.entry(hash).or_insert_with(|| row.clone());
                prop_assert_eq!(first, &row);
            }
        }
    }
}
