use thiserror::Error;
use toolwarden_model::Fingerprint;

use super::chain::{ContentRef, Link};
use super::removal::removed;

/// The first thing that is wrong with a log.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The oldest records are gone, and the log does not say that they were removed.
    #[error("record {expected} is missing: the log starts with record {first}")]
    StartMissing {
        /// The record it should start with.
        expected: u64,
        /// The record it starts with.
        first: u64,
    },
    /// A record between two others is gone.
    #[error("record {seq} is missing")]
    Missing {
        /// The record.
        seq: u64,
    },
    /// A record is where none can be: before the start, or out of order.
    #[error("record {seq} does not belong where it is")]
    Unexpected {
        /// The number it has.
        seq: i64,
    },
    /// A record says something else than when it was written, or follows another record.
    #[error("record {seq} was changed")]
    Changed {
        /// The record.
        seq: u64,
    },
    /// The newest records are gone.
    #[error("the log ends with record {found} and should end with record {expected}")]
    TailMissing {
        /// The record it should end with.
        expected: u64,
        /// The record it ends with.
        found: u64,
    },
    /// There are records after the head.
    #[error("record {seq} was added after the head")]
    BeyondHead {
        /// The first of them.
        seq: u64,
    },
    /// The head names another hash than the last record has.
    #[error("the head is not the hash of record {seq}")]
    HeadDiffers {
        /// The last record.
        seq: u64,
    },
    /// There is no head, or what stands there is none.
    #[error("the log has no readable head")]
    HeadUnreadable,
    /// The log says that records were removed, and no record says the same.
    #[error("no checkpoint says that the records up to {through} were removed")]
    RemovalUnproven {
        /// The last of them.
        through: u64,
    },
    /// The record of the noted head is gone.
    #[error("record {seq}, the noted head, is missing")]
    NotedMissing {
        /// The record.
        seq: u64,
    },
    /// The record of the noted head has another hash.
    #[error("record {seq} is not the one whose hash was noted")]
    NotedDiffers {
        /// The record.
        seq: u64,
    },
}

/// A log with nothing wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intact {
    /// How many records there are.
    pub records: u64,
    /// The last record.
    pub head: Link,
    /// What became of the noted head.
    pub noted: NotedHead,
}

/// What became of a head that was noted elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotedHead {
    /// None was given.
    NotGiven,
    /// The record is there with that hash, so nothing up to it was changed.
    Confirmed,
    /// The record was removed by retention: it can no longer be said.
    Removed,
}

/// Checks a log, fed with its records in order.
#[derive(Debug)]
pub struct Verifier {
    head: Link,
    removed: Link,
    noted: Option<Link>,
    noted_head: NotedHead,
    last: Link,
    records: u64,
    /// What the newest checkpoint says.
    proven: Link,
}

impl Verifier {
    /// For a log that claims this head, and that its records up to `removed` were removed
    /// ([`Link::GENESIS`] if none were). The record of a `noted` head must be there too.
    #[must_use]
    pub const fn new(head: Link, removed: Link, noted: Option<Link>) -> Self {
        Self {
            head,
            removed,
            noted,
            noted_head: NotedHead::NotGiven,
            last: removed,
            records: 0,
            proven: Link::GENESIS,
        }
    }

    /// Takes the next record; none for a content that cannot be read.
    ///
    /// # Errors
    /// The first fault. Nothing is to be fed after it.
    pub fn feed(
        &mut self,
        seq: i64,
        content: Option<ContentRef<'_>>,
        hash: &Fingerprint,
    ) -> Result<(), Fault> {
        let unexpected = Fault::Unexpected { seq };
        let seq = u64::try_from(seq).map_err(|_| unexpected.clone())?;
        let expected = self.last.seq.saturating_add(1);
        if seq < expected {
            return Err(unexpected);
        }
        if seq > expected {
            return Err(if self.records == 0 {
                let first = seq;
                Fault::StartMissing { expected, first }
            } else {
                Fault::Missing { seq: expected }
            });
        }
        let content = content.ok_or(Fault::Changed { seq })?;
        let next = self.last.next(content);
        if next.hash != *hash {
            return Err(Fault::Changed { seq });
        }
        if seq > self.head.seq {
            return Err(Fault::BeyondHead { seq });
        }
        self.last = next;
        self.records = self.records.saturating_add(1);
        self.proven = removed(content).unwrap_or(self.proven);
        self.compare_noted(next)
    }

    /// Ends the log.
    ///
    /// # Errors
    /// The first fault.
    pub fn finish(mut self) -> Result<Intact, Fault> {
        let (found, expected) = (self.last.seq, self.head.seq);
        if found < expected {
            return Err(Fault::TailMissing { expected, found });
        }
        if self.last != self.head {
            return Err(Fault::HeadDiffers { seq: found });
        }
        if self.proven != self.removed {
            let through = self.proven.seq.max(self.removed.seq);
            return Err(Fault::RemovalUnproven { through });
        }
        self.compare_noted(self.removed)?;
        Ok(Intact {
            records: self.records,
            head: self.last,
            noted: self.noted_head()?,
        })
    }

    fn compare_noted(&mut self, link: Link) -> Result<(), Fault> {
        let Some(noted) = self.noted.filter(|noted| noted.seq == link.seq) else {
            return Ok(());
        };
        if noted != link {
            return Err(Fault::NotedDiffers { seq: link.seq });
        }
        self.noted_head = NotedHead::Confirmed;
        Ok(())
    }

    fn noted_head(&self) -> Result<NotedHead, Fault> {
        match self.noted {
            Some(noted) if noted.seq < self.removed.seq => Ok(NotedHead::Removed),
            Some(Link { seq, .. }) if seq > self.last.seq => Err(Fault::NotedMissing { seq }),
            _ => Ok(self.noted_head),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Content, checkpoint};
    use super::*;

    fn content(number: i64) -> Content {
        Content {
            kind: "decision".into(),
            code: "allowed".into(),
            allowed: Some(true),
            ..checkpoint(Link::GENESIS, number, "ada")
        }
    }

    type Rows = Vec<(Link, Content)>;

    /// A chain of records, from the first on.
    fn chain(contents: Vec<Content>) -> Rows {
        let mut last = Link::GENESIS;
        let linked = contents.into_iter().map(|content| {
            last = last.next(content.borrow());
            (last, content)
        });
        linked.collect()
    }

    fn verify(
        rows: &[(Link, Content)],
        head: Link,
        removed: Link,
        noted: Option<Link>,
    ) -> Result<Intact, Fault> {
        let mut verifier = Verifier::new(head, removed, noted);
        for (link, content) in rows {
            let seq = i64::try_from(link.seq).unwrap();
            verifier.feed(seq, Some(content.borrow()), &link.hash)?;
        }
        verifier.finish()
    }

    #[test]
    fn an_intact_log_is_told_with_its_head() {
        let rows = chain((1..=5).map(content).collect());
        let head = rows[4].0;
        let intact = |noted| Intact {
            records: 5,
            head,
            noted,
        };
        let check = |noted| verify(&rows, head, Link::GENESIS, noted);
        assert_eq!(check(None), Ok(intact(NotedHead::NotGiven)));
        assert_eq!(check(Some(rows[2].0)), Ok(intact(NotedHead::Confirmed)));
        assert_eq!(check(Some(Link::GENESIS)), Ok(intact(NotedHead::Confirmed)));
        let beyond = Link { seq: 6, ..head };
        assert_eq!(check(Some(beyond)), Err(Fault::NotedMissing { seq: 6 }));
        let other = Link { seq: 4, ..head };
        assert_eq!(check(Some(other)), Err(Fault::NotedDiffers { seq: 4 }));
        let empty = verify(&[], Link::GENESIS, Link::GENESIS, None).unwrap();
        assert_eq!(empty.records, 0);
    }

    #[test]
    fn the_first_fault_is_told() {
        let rows = chain((1..=5).map(content).collect());
        let head = rows[4].0;
        let check = |edit: &dyn Fn(&mut Rows)| {
            let mut rows = rows.clone();
            edit(&mut rows);
            verify(&rows, head, Link::GENESIS, None).unwrap_err()
        };
        let start = Fault::StartMissing {
            expected: 1,
            first: 2,
        };
        assert_eq!(check(&|it| drop(it.remove(0))), start);
        assert_eq!(check(&|it| drop(it.remove(2))), Fault::Missing { seq: 3 });
        let tail = Fault::TailMissing {
            expected: 5,
            found: 4,
        };
        assert_eq!(check(&|it| drop(it.pop())), tail);
        assert_eq!(check(&|it| it[2].1.at_ms = 9), Fault::Changed { seq: 3 });
        assert_eq!(
            check(&|it| it[2].0.hash = head.hash),
            Fault::Changed { seq: 3 }
        );
        assert_eq!(check(&|it| it.swap(1, 2)), Fault::Missing { seq: 2 });
        assert_eq!(
            check(&|it| it.insert(2, it[1].clone())),
            Fault::Unexpected { seq: 2 }
        );
        let more = chain((1..=6).map(content).collect());
        let told = verify(&more, head, Link::GENESIS, None);
        assert_eq!(told, Err(Fault::BeyondHead { seq: 6 }));
        let head = Link {
            seq: 5,
            ..Link::GENESIS
        };
        let told = verify(&rows, head, Link::GENESIS, None);
        assert_eq!(told, Err(Fault::HeadDiffers { seq: 5 }));
    }

    #[test]
    fn a_removal_is_proven_by_the_newest_checkpoint() {
        let mut contents: Vec<_> = (1..=5).map(content).collect();
        let old = chain(contents.clone());
        contents.push(checkpoint(old[1].0, 6, "ada"));
        contents.push(checkpoint(old[3].0, 7, "ada"));
        contents.push(content(8));
        let rows = chain(contents);
        let head = rows[7].0;
        let check = |from: usize, removed: Link, noted| {
            verify(&rows[from..], head, removed, noted).map(|it| it.noted)
        };
        assert_eq!(check(4, old[3].0, None), Ok(NotedHead::NotGiven));
        assert_eq!(check(4, old[3].0, Some(old[3].0)), Ok(NotedHead::Confirmed));
        assert_eq!(check(4, old[3].0, Some(old[0].0)), Ok(NotedHead::Removed));
        let forged = Link {
            hash: head.hash,
            ..old[3].0
        };
        assert_eq!(check(4, forged, None), Err(Fault::Changed { seq: 5 }));
        let unproven = |through| Err(Fault::RemovalUnproven { through });
        assert_eq!(
            check(5, rows[4].0, None),
            unproven(5),
            "one more was removed"
        );
        assert_eq!(
            check(2, old[1].0, None),
            unproven(4),
            "the older checkpoint does not count"
        );
        assert_eq!(check(0, Link::GENESIS, None), unproven(4));
        let start = Fault::StartMissing {
            expected: 1,
            first: 5,
        };
        assert_eq!(check(4, Link::GENESIS, None), Err(start));
    }
}
