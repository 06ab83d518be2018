use std::ops::ControlFlow;

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use crate::audit::{COLUMNS, RecordRow, record_from_row, sql_integer, unsigned_column};
use crate::error::StoreError;
use crate::store::Store;

/// Selects records; all given conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct RecordFilter {
    /// At this time or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Before this time.
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
    /// Only denied calls.
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

/// The field by which records are counted.
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

/// The number of records with the same value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordCount {
    /// The common value; `None` for records without one.
    pub key: Option<String>,
    /// The number of records.
    pub records: u64,
    /// How many of them allowed a call.
    pub allowed: u64,
    /// How many of them denied a call.
    pub denied: u64,
}

impl Store {
    /// Passes the selected records to `each`, one at a time in log order, until it breaks.
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
            let Some(record) = record_from_row(row) else {
                unreadable = Some(row.get::<_, i64>(0)?);
                return Ok(ControlFlow::Break(()));
            };
            Ok(each(&record))
        })?;
        unreadable.map_or(Ok(()), |seq| {
            Err(self.damaged_error(format!("record {seq} cannot be read")))
        })
    }

    /// Counts the selected records, grouped by a field. Hours are in time order, all other groups
    /// by descending count. The limit applies to groups.
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
                records: unsigned_column(row, 1)?,
                allowed: unsigned_column(row, 2)?,
                denied: unsigned_column(row, 3)?,
            })
        })
    }
}

/// The SQL condition of a filter, and its parameters.
///
/// Times are converted to record numbers by the index, so that rows come in log order without
/// sorting; the plus keeps SQLite from using the index for anything else.
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
        parameters.push(Value::from(sql_integer(after)));
    }
    if let Some(before) = filter.before_seq {
        conditions.push("seq < ?");
        parameters.push(Value::from(sql_integer(before)));
    }
    (conditions.join(" AND "), parameters)
}

/// The limit for SQLite: a negative value means no limit.
fn limit(filter: &RecordFilter) -> Value {
    Value::from(filter.limit.map_or(-1, sql_integer))
}
