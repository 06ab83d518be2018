use thiserror::Error;
use toolwarden_model::Fingerprint;

use super::chain::{ChainLink, RecordContentRef};
use super::checkpoint::removed_up_to;

/// The first fault found in a log.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChainFault {
    /// The oldest records are missing, and the log does not state that they were removed.
    #[error("record {expected} is missing: the log starts with record {first}")]
    StartMissing {
        /// The record it should start with.
        expected: u64,
        /// The record it starts with.
        first: u64,
    },
    /// A record between two others is missing.
    #[error("record {seq} is missing")]
    Missing {
        /// The record.
        seq: u64,
    },
    /// A record has an impossible number: before the start, or out of order.
    #[error("record {seq} does not belong where it is")]
    Unexpected {
        /// The number it has.
        seq: i64,
    },
    /// The content of a record was changed, or it follows a different record.
    #[error("record {seq} was changed")]
    Changed {
        /// The record.
        seq: u64,
    },
    /// The newest records are missing.
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
    /// The head has a different hash from the last record.
    #[error("the head is not the hash of record {seq}")]
    HeadDiffers {
        /// The last record.
        seq: u64,
    },
    /// The head is missing or unreadable.
    #[error("the log has no readable head")]
    HeadUnreadable,
    /// The log states that records were removed, and no checkpoint record confirms it.
    #[error("no checkpoint says that the records up to {through} were removed")]
    RemovalUnproven {
        /// The last of the removed records.
        through: u64,
    },
    /// The record of the noted head is missing.
    #[error("record {seq}, the noted head, is missing")]
    NotedMissing {
        /// The record.
        seq: u64,
    },
    /// The record of the noted head has a different hash.
    #[error("record {seq} is not the one whose hash was noted")]
    NotedDiffers {
        /// The record.
        seq: u64,
    },
}

/// The result for a log without faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedLog {
    /// The number of records.
    pub records: u64,
    /// The last record.
    pub head: ChainLink,
    /// The result for the noted head.
    pub noted: HeadCheck,
}

/// Whether a head that was noted elsewhere is still in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadCheck {
    /// The caller gave no noted head.
    NotGiven,
    /// The record exists with that hash, so no record up to it was changed.
    Confirmed,
    /// Retention removed the record, so the noted head can no longer be checked.
    Removed,
}

/// Verifies a log; the caller feeds it the records in order.
#[derive(Debug)]
pub struct ChainVerifier {
    head: ChainLink,
    removed: ChainLink,
    noted: Option<ChainLink>,
    noted_head: HeadCheck,
    last: ChainLink,
    records: u64,
    /// The last removed record according to the newest checkpoint.
    checkpointed: ChainLink,
}

impl ChainVerifier {
    /// A verifier for a log with this head, whose records up to `removed` were removed ([`ChainLink::GENESIS`]
    /// if none were). If the caller gives a `noted` head, its record must exist too.
    #[must_use]
    pub const fn new(head: ChainLink, removed: ChainLink, noted: Option<ChainLink>) -> Self {
        Self {
            head,
            removed,
            noted,
            noted_head: HeadCheck::NotGiven,
            last: removed,
            records: 0,
            checkpointed: ChainLink::GENESIS,
        }
    }

    /// Verifies the next record; `None` is a record whose content cannot be read.
    ///
    /// # Errors
    /// The first fault. Do not feed more records after it.
    pub fn feed(
        &mut self,
        seq: i64,
        content: Option<RecordContentRef<'_>>,
        hash: &Fingerprint,
    ) -> Result<(), ChainFault> {
        let unexpected = ChainFault::Unexpected { seq };
        let seq = u64::try_from(seq).map_err(|_| unexpected.clone())?;
        let expected = self.last.seq.saturating_add(1);
        if seq < expected {
            return Err(unexpected);
        }
        if seq > expected {
            return Err(if self.records == 0 {
                let first = seq;
                ChainFault::StartMissing { expected, first }
            } else {
                ChainFault::Missing { seq: expected }
            });
        }
        let content = content.ok_or(ChainFault::Changed { seq })?;
        let next = self.last.next(content);
        if next.hash != *hash {
            return Err(ChainFault::Changed { seq });
        }
        if seq > self.head.seq {
            return Err(ChainFault::BeyondHead { seq });
        }
        self.last = next;
        self.records = self.records.saturating_add(1);
        self.checkpointed = removed_up_to(content).unwrap_or(self.checkpointed);
        self.compare_noted(next)
    }

    /// Ends the verification after the last record.
    ///
    /// # Errors
    /// The first fault.
    pub fn finish(mut self) -> Result<VerifiedLog, ChainFault> {
        let (found, expected) = (self.last.seq, self.head.seq);
        if found < expected {
            return Err(ChainFault::TailMissing { expected, found });
        }
        if self.last != self.head {
            return Err(ChainFault::HeadDiffers { seq: found });
        }
        if self.checkpointed != self.removed {
            let through = self.checkpointed.seq.max(self.removed.seq);
            return Err(ChainFault::RemovalUnproven { through });
        }
        self.compare_noted(self.removed)?;
        Ok(VerifiedLog {
            records: self.records,
            head: self.last,
            noted: self.noted_head()?,
        })
    }

    fn compare_noted(&mut self, link: ChainLink) -> Result<(), ChainFault> {
        let Some(noted) = self.noted.filter(|noted| noted.seq == link.seq) else {
            return Ok(());
        };
        if noted != link {
            return Err(ChainFault::NotedDiffers { seq: link.seq });
        }
        self.noted_head = HeadCheck::Confirmed;
        Ok(())
    }

    fn noted_head(&self) -> Result<HeadCheck, ChainFault> {
        match self.noted {
            Some(noted) if noted.seq < self.removed.seq => Ok(HeadCheck::Removed),
            Some(ChainLink { seq, .. }) if seq > self.last.seq => {
                Err(ChainFault::NotedMissing { seq })
            }
            _ => Ok(self.noted_head),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RecordContent, checkpoint};
    use super::*;

    fn content(number: i64) -> RecordContent {
        RecordContent {
            kind: "decision".into(),
            code: "allowed".into(),
            allowed: Some(true),
            ..checkpoint(ChainLink::GENESIS, number, "ada")
        }
    }

    type Rows = Vec<(ChainLink, RecordContent)>;

    /// A chain of records, from the first on.
    fn chain(contents: Vec<RecordContent>) -> Rows {
        let mut last = ChainLink::GENESIS;
        let linked = contents.into_iter().map(|content| {
            last = last.next(content.borrow());
            (last, content)
        });
        linked.collect()
    }

    fn verify(
        rows: &[(ChainLink, RecordContent)],
        head: ChainLink,
        removed: ChainLink,
        noted: Option<ChainLink>,
    ) -> Result<VerifiedLog, ChainFault> {
        let mut verifier = ChainVerifier::new(head, removed, noted);
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
        let intact = |noted| VerifiedLog {
            records: 5,
            head,
            noted,
        };
        let check = |noted| verify(&rows, head, ChainLink::GENESIS, noted);
        assert_eq!(check(None), Ok(intact(HeadCheck::NotGiven)));
        assert_eq!(check(Some(rows[2].0)), Ok(intact(HeadCheck::Confirmed)));
        assert_eq!(
            check(Some(ChainLink::GENESIS)),
            Ok(intact(HeadCheck::Confirmed))
        );
        let beyond = ChainLink { seq: 6, ..head };
        assert_eq!(
            check(Some(beyond)),
            Err(ChainFault::NotedMissing { seq: 6 })
        );
        let other = ChainLink { seq: 4, ..head };
        assert_eq!(check(Some(other)), Err(ChainFault::NotedDiffers { seq: 4 }));
        let empty = verify(&[], ChainLink::GENESIS, ChainLink::GENESIS, None).unwrap();
        assert_eq!(empty.records, 0);
    }

    #[test]
    fn the_first_fault_is_told() {
        let rows = chain((1..=5).map(content).collect());
        let head = rows[4].0;
        let check = |edit: &dyn Fn(&mut Rows)| {
            let mut rows = rows.clone();
            edit(&mut rows);
            verify(&rows, head, ChainLink::GENESIS, None).unwrap_err()
        };
        let start = ChainFault::StartMissing {
            expected: 1,
            first: 2,
        };
        assert_eq!(check(&|it| drop(it.remove(0))), start);
        assert_eq!(
            check(&|it| drop(it.remove(2))),
            ChainFault::Missing { seq: 3 }
        );
        let tail = ChainFault::TailMissing {
            expected: 5,
            found: 4,
        };
        assert_eq!(check(&|it| drop(it.pop())), tail);
        assert_eq!(
            check(&|it| it[2].1.at_ms = 9),
            ChainFault::Changed { seq: 3 }
        );
        assert_eq!(
            check(&|it| it[2].0.hash = head.hash),
            ChainFault::Changed { seq: 3 }
        );
        assert_eq!(check(&|it| it.swap(1, 2)), ChainFault::Missing { seq: 2 });
        assert_eq!(
            check(&|it| it.insert(2, it[1].clone())),
            ChainFault::Unexpected { seq: 2 }
        );
        let more = chain((1..=6).map(content).collect());
        let told = verify(&more, head, ChainLink::GENESIS, None);
        assert_eq!(told, Err(ChainFault::BeyondHead { seq: 6 }));
        let head = ChainLink {
            seq: 5,
            ..ChainLink::GENESIS
        };
        let told = verify(&rows, head, ChainLink::GENESIS, None);
        assert_eq!(told, Err(ChainFault::HeadDiffers { seq: 5 }));
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
        let check = |from: usize, removed: ChainLink, noted| {
            verify(&rows[from..], head, removed, noted).map(|it| it.noted)
        };
        assert_eq!(check(4, old[3].0, None), Ok(HeadCheck::NotGiven));
        assert_eq!(check(4, old[3].0, Some(old[3].0)), Ok(HeadCheck::Confirmed));
        assert_eq!(check(4, old[3].0, Some(old[0].0)), Ok(HeadCheck::Removed));
        let forged = ChainLink {
            hash: head.hash,
            ..old[3].0
        };
        assert_eq!(check(4, forged, None), Err(ChainFault::Changed { seq: 5 }));
        let unproven = |through| Err(ChainFault::RemovalUnproven { through });
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
        assert_eq!(check(0, ChainLink::GENESIS, None), unproven(4));
        let start = ChainFault::StartMissing {
            expected: 1,
            first: 5,
        };
        assert_eq!(check(4, ChainLink::GENESIS, None), Err(start));
    }
}
