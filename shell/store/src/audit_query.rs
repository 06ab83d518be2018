use std::ops::ControlFlow;

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use crate::audit::{COLUMNS, RecordRow, count, number, record};
use crate::error::StoreError;
use crate::store::Store;

/// Which records are wanted; all that is given must hold.
#[derive(Clone, Debug, Default)]
pub struct RecordFilter {
    /// Of this time or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Of an earlier time than this.
    pub until_ms: Option<i64>,
    /// Of this tool.
    pub tool: Option<String>,
    /// Of this principal.
    pub principal: Option<String>,
    /// Of this session.
    pub session: Option<String>,
    /// With this reason code.
    pub code: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Only what was not allowed.
    pub denied: bool,
    /// After this record.
    pub after_seq: Option<u64>,
    /// Before this record.
    pub before_seq: Option<u64>,
    /// At most this many.
    pub limit: Option<u64>,
    /// The newest record comes first, instead of the oldest.
    pub newest_first: bool,
}

/// What records are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountBy {
    /// The reason code.
    Code,
    /// The tool.
    Tool,
    /// The principal.
    Principal,
    /// The kind.
    Kind,
    /// The hour, as `2026-01-01T00:00:00Z`.
    Hour,
}

impl CountBy {
    const fn column(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Tool => "tool",
            Self::Principal => "principal",
            Self::Kind => "kind",
            Self::Hour => "strftime('%Y-%m-%dT%H:00:00Z', at / 1000, 'unixepoch')",
        }
    }
}

/// How many records have something in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordCount {
    /// What they have in common; none for records without it.
    pub key: Option<String>,
    /// How many.
    pub records: u64,
    /// How many of them say that something was allowed.
    pub allowed: u64,
    /// How many of them say that something was not.
    pub denied: u64,
}

impl Store {
    /// The records that are wanted, one by one in the order of the log, until told to stop.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn records(
        &self,
        filter: &RecordFilter,
        mut each: impl FnMut(&RecordRow<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let (conditions, mut parameters) = conditions(filter);
        let order = if filter.newest_first { "DESC" } else { "ASC" };
        parameters.push(limit(filter));
        let query = format!(
            "SELECT {COLUMNS} FROM audit_record WHERE {conditions} ORDER BY seq {order} LIMIT ?"
        );
        let mut unreadable = None;
        self.each_row(&query, &parameters, |row| {
            let Some(record) = record(row) else {
                unreadable = Some(row.get::<_, i64>(0)?);
                return Ok(ControlFlow::Break(()));
            };
            Ok(each(&record))
        })?;
        unreadable.map_or(Ok(()), |seq| {
            Err(self.damaged(format!("record {seq} cannot be read")))
        })
    }

    /// How many of the wanted records there are, by what they have in common; hours in order,
    /// everything else with the most frequent first. The limit is one of groups.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn count_records(
        &self,
        filter: &RecordFilter,
        by: CountBy,
    ) -> Result<Vec<RecordCount>, StoreError> {
        let (conditions, mut parameters) = conditions(filter);
        parameters.push(limit(filter));
        let order = match by {
            CountBy::Hour => "1",
            CountBy::Code | CountBy::Tool | CountBy::Principal | CountBy::Kind => "2 DESC, 1",
        };
        let column = by.column();
        let query = format!(
            "SELECT {column}, count(*), count(*) FILTER (WHERE allowed = 1),
                count(*) FILTER (WHERE allowed = 0)
             FROM audit_record WHERE {conditions} GROUP BY 1 ORDER BY {order} LIMIT ?"
        );
        self.rows(&query, params_from_iter(parameters), |row| {
            Ok(RecordCount {
                key: row.get(0)?,
                records: count(row, 1)?,
                allowed: count(row, 2)?,
                denied: count(row, 3)?,
            })
        })
    }
}

/// The condition of a filter, and what stands for its question marks.
///
/// Times are turned into numbers of records by the index, so that rows come in the order of the log
/// without being sorted; the plus keeps SQLite from using the index for anything else.
fn conditions(filter: &RecordFilter) -> (String, Vec<Value>) {
    let mut conditions = vec!["true"];
    let mut parameters: Vec<Value> = Vec::new();
    if let Some(since) = filter.since_ms {
        conditions.push("seq >= (SELECT min(seq) FROM audit_record WHERE at >= ?) AND +at >= ?");
        parameters.extend([Value::from(since), Value::from(since)]);
    }
    if let Some(until) = filter.until_ms {
        conditions.push("seq <= (SELECT max(seq) FROM audit_record WHERE at < ?) AND +at < ?");
        parameters.extend([Value::from(until), Value::from(until)]);
    }
    let texts = [
        ("tool = ?", &filter.tool),
        ("principal = ?", &filter.principal),
        ("session = ?", &filter.session),
        ("code = ?", &filter.code),
        ("kind = ?", &filter.kind),
    ];
    for (condition, text) in texts {
        if let Some(text) = text {
            conditions.push(condition);
            parameters.push(Value::from(text.clone()));
        }
    }
    if filter.denied {
        conditions.push("allowed = 0");
    }
    if let Some(after) = filter.after_seq {
        conditions.push("seq > ?");
        parameters.push(Value::from(number(after)));
    }
    if let Some(before) = filter.before_seq {
        conditions.push("seq < ?");
        parameters.push(Value::from(number(before)));
    }
    (conditions.join(" AND "), parameters)
}

/// The limit as SQLite has it: a negative one is none.
fn limit(filter: &RecordFilter) -> Value {
    Value::from(filter.limit.map_or(-1, number))
}
