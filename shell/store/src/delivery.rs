use jiff::Timestamp;
use rusqlite::Row;
use thiserror::Error;

use crate::error::StoreError;
use crate::store::{Store, invalid_column, time_column, time_text};

/// The state of one notice for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The name of the target.
    pub target: String,
    /// The id of the notice.
    pub notice: String,
    /// Its status.
    pub status: DeliveryStatus,
    /// The number of attempts.
    pub tries: u32,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// The time of the last status change.
    pub at: Timestamp,
}

/// The status of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// Delivery attempts continue.
    Pending,
    /// The target received it.
    Delivered,
    /// All attempts failed.
    Failed,
}

impl DeliveryStatus {
    /// The word for it in the store and in output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}

/// A delivery that is still pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingDelivery {
    /// The name of the target.
    pub target: String,
    /// The id of the notice.
    pub notice: String,
    /// The notice, as queued.
    pub document: String,
    /// The number of attempts.
    pub tries: u32,
}

/// The outcome of one attempt.
#[derive(Clone, Copy, Debug)]
pub struct StoredAttempt<'a> {
    /// The name of the target.
    pub target: &'a str,
    /// The id of the notice.
    pub notice: &'a str,
    /// The new status of the delivery.
    pub status: DeliveryStatus,
    /// The number of attempts so far.
    pub tries: u32,
    /// Why the attempt failed.
    pub error: Option<&'a str>,
    /// The time of the attempt.
    pub at: Timestamp,
}

/// The latest deliveries to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastDelivery {
    /// The name of the target.
    pub target: String,
    /// When a delivery last succeeded.
    pub success: Option<Timestamp>,
    /// When a delivery last failed, and why.
    pub failure: Option<(Timestamp, String)>,
}

/// Selects deliveries; all given conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    /// To this target.
    pub target: Option<String>,
    /// Of this notice.
    pub notice: Option<String>,
    /// In this status.
    pub status: Option<DeliveryStatus>,
    /// At most this many.
    pub limit: Option<u32>,
}

#[derive(Debug, Error)]
#[error("unknown status `{0}`")]
struct UnknownDeliveryStatus(String);

impl Store {
    /// Queues a notice for a target. Returns false if it is already delivered or pending; a failed
    /// delivery is queued again.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn queue_delivery(
        &self,
        target: &str,
        notice: &str,
        document: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let kept = "INSERT INTO notice VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        let queued = "
            INSERT INTO delivery (target, notice, status, tries, error, at)
            VALUES (?1, ?2, 'pending', 0, NULL, ?3)
            ON CONFLICT (target, notice) DO UPDATE SET status = 'pending', tries = 0, at = ?3
                WHERE status = 'failed'";
        self.write_transaction(|store| {
            store.execute(kept, (notice, document))?;
            Ok(store.execute(queued, (target, notice, time_text(at)))? > 0)
        })
    }

    /// Stores the outcome of an attempt. Attempts of unknown deliveries are ignored.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn record_attempt(&self, tried: &StoredAttempt<'_>) -> Result<(), StoreError> {
        let statement = "
            UPDATE delivery SET status = ?3, tries = ?4, error = coalesce(?5, error), at = ?6
            WHERE target = ?1 AND notice = ?2";
        let row = (
            tried.target,
            tried.notice,
            tried.status.as_str(),
            tried.tries,
            tried.error,
            time_text(tried.at),
        );
        self.execute(statement, row)?;
        Ok(())
    }

    /// The pending deliveries, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn pending_deliveries(&self) -> Result<Vec<PendingDelivery>, StoreError> {
        let query = "
            SELECT target, notice, document, tries
            FROM delivery JOIN notice ON notice.id = delivery.notice
            WHERE status = 'pending' ORDER BY delivery.id";
        self.rows(query, [], |row| {
            Ok(PendingDelivery {
                target: row.get(0)?,
                notice: row.get(1)?,
                document: row.get(2)?,
                tries: row.get(3)?,
            })
        })
    }

    /// The selected deliveries, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<Delivery>, StoreError> {
        let query = "
            SELECT target, notice, status, tries, error, at FROM delivery
            WHERE (?1 IS NULL OR target = ?1) AND (?2 IS NULL OR notice = ?2)
                AND (?3 IS NULL OR status = ?3)
            ORDER BY id DESC LIMIT ?4";
        let status = filter.status.map(DeliveryStatus::as_str);
        // A negative limit means no limit.
        let limit = filter.limit.map_or(-1, i64::from);
        let wanted = (&filter.target, &filter.notice, status, limit);
        self.rows(query, wanted, delivery_from_row)
    }

    /// The latest deliveries, by target.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn last_deliveries(&self) -> Result<Vec<LastDelivery>, StoreError> {
        // SQLite takes the other columns from the row with the maximum.
        let query = "
            SELECT target, NULL, max(at), error FROM delivery
                WHERE error IS NOT NULL AND status != 'delivered' GROUP BY target
            UNION ALL
            SELECT target, max(at), NULL, NULL FROM delivery
                WHERE status = 'delivered' GROUP BY target
            ORDER BY target";
        let rows = self.rows(query, [], |row| {
            let target: String = row.get(0)?;
            let success: Option<String> = row.get(1)?;
            let success = success.is_some().then(|| time_column(row, 1)).transpose()?;
            let failure: Option<String> = row.get(3)?;
            let failure =
                failure.map(|error| Ok::<_, rusqlite::Error>((time_column(row, 2)?, error)));
            Ok((target, success, failure.transpose()?))
        })?;
        let mut last: Vec<LastDelivery> = Vec::new();
        for (target, success, failure) in rows {
            match last.last_mut() {
                Some(known) if known.target == target => {
                    known.success = known.success.or(success);
                    known.failure = known.failure.take().or(failure);
                }
                _ => last.push(LastDelivery {
                    target,
                    success,
                    failure,
                }),
            }
        }
        Ok(last)
    }

    /// Removes deliveries settled before a time, and notices without remaining deliveries. A
    /// removed delivery is forgotten: the same notice would be delivered again.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn prune_deliveries(&self, before: Timestamp) -> Result<usize, StoreError> {
        self.write_transaction(|store| {
            let old = "DELETE FROM delivery WHERE status != 'pending' AND at < ?1";
            let removed = store.execute(old, [time_text(before)])?;
            let unused = "
                DELETE FROM notice WHERE NOT EXISTS
                    (SELECT 1 FROM delivery WHERE delivery.notice = notice.id)";
            store.execute(unused, [])?;
            Ok(removed)
        })
    }
}

fn delivery_from_row(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    let word: String = row.get(2)?;
    let known = [
        DeliveryStatus::Pending,
        DeliveryStatus::Delivered,
        DeliveryStatus::Failed,
    ];
    let status = known.into_iter().find(|status| status.as_str() == word);
    Ok(Delivery {
        target: row.get(0)?,
        notice: row.get(1)?,
        status: status.ok_or_else(|| invalid_column(2, UnknownDeliveryStatus(word)))?,
        tries: row.get(3)?,
        error: row.get(4)?,
        at: time_column(row, 5)?,
    })
}
