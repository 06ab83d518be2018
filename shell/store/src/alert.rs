use jiff::Timestamp;
use rusqlite::Row;
use thiserror::Error;

use crate::error::StoreError;
use crate::server::{ServerId, ServerKey};
use crate::store::{Store, invalid, kept_time, time};

/// A notice of drift. The same drift is one alert, however often it is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Names the drift: the same for the same baseline and the same sighting.
    pub id: String,
    /// The server.
    pub server: ServerKey,
    /// The tool.
    pub tool: String,
    /// `schema_change`, `response_change` or `behavior_change`.
    pub change_type: String,
    /// `low`, `medium` or `high`.
    pub severity: String,
    /// The gravest class of its changes.
    pub class: String,
    /// What became of it.
    pub status: AlertStatus,
    /// When it was seen first.
    pub first_seen: Timestamp,
    /// When it was seen last.
    pub last_seen: Timestamp,
    /// How often it was seen.
    pub times: u32,
    /// Everything about it, as JSON.
    pub document: String,
    /// The alert as the toolwatch program writes it, as JSON.
    pub old_form: String,
}

/// What became of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertStatus {
    /// The tool is still not as it was pinned.
    Open,
    /// Somebody approved it.
    Approved,
    /// The tool is as pinned again, or has drifted further.
    Closed,
}

impl AlertStatus {
    /// The word it is kept and shown as.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Approved => "approved",
            Self::Closed => "closed",
        }
    }
}

/// An alert to be raised.
#[derive(Clone, Debug)]
pub struct NewAlert<'a> {
    /// Names the drift.
    pub id: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// `schema_change`, `response_change` or `behavior_change`.
    pub change_type: &'a str,
    /// `low`, `medium` or `high`.
    pub severity: &'a str,
    /// The gravest class of its changes.
    pub class: &'a str,
    /// When.
    pub at: Timestamp,
    /// Everything about it, as JSON.
    pub document: &'a str,
    /// The alert as the toolwatch program writes it, as JSON.
    pub old_form: &'a str,
}

/// Whether an alert says something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raised {
    /// Nobody was told yet.
    First,
    /// It was known.
    Again,
}

/// Which alerts are wanted; all that holds must hold.
#[derive(Clone, Debug, Default)]
pub struct AlertFilter {
    /// Seen at or after this time.
    pub since: Option<Timestamp>,
    /// Of these severities.
    pub severities: Vec<String>,
    /// Of these tools.
    pub tools: Vec<String>,
    /// Of these servers, by name.
    pub servers: Vec<String>,
    /// In this status.
    pub status: Option<AlertStatus>,
}

const SELECT: &str = "
    SELECT alert.id, server.name, server.scope, tool, change_type, severity, class, status,
        alert.first_seen, last_seen, times, document, old_form
    FROM alert JOIN server ON server.id = alert.server";

#[derive(Debug, Error)]
#[error("unknown status `{0}`")]
struct UnknownStatus(String);

impl Store {
    /// Raises an alert, or counts one that is known. One that was closed is open again.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn raise(&self, server: ServerId, alert: &NewAlert<'_>) -> Result<Raised, StoreError> {
        let known = "SELECT status FROM alert WHERE id = ?1";
        let status: Vec<String> = self.rows(known, [alert.id], |row| row.get(0))?;
        if let Some(status) = status.first() {
            let again = "
                UPDATE alert SET last_seen = ?2, times = times + 1, status = 'open' WHERE id = ?1";
            self.execute(again, (alert.id, kept_time(alert.at)))?;
            // What somebody approved and then came back is news.
            return Ok(if status == "approved" {
                Raised::First
            } else {
                Raised::Again
            });
        }
        self.add_alert(server, alert, AlertStatus::Open)?;
        Ok(Raised::First)
    }

    /// Adds an alert if its id is not known.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn add_alert(
        &self,
        server: ServerId,
        alert: &NewAlert<'_>,
        status: AlertStatus,
    ) -> Result<bool, StoreError> {
        let statement = "
            INSERT INTO alert VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, 1, ?9, ?10)
            ON CONFLICT DO NOTHING";
        let added = self.execute(
            statement,
            (
                alert.id,
                server.0,
                alert.tool,
                alert.change_type,
                alert.severity,
                alert.class,
                status.as_str(),
                kept_time(alert.at),
                alert.document,
                alert.old_form,
            ),
        )?;
        Ok(added > 0)
    }

    /// Settles the open alerts of a tool and a change type, but for those that still hold.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn settle(
        &self,
        server: ServerId,
        tool: &str,
        change_type: &str,
        status: AlertStatus,
        except: &[String],
    ) -> Result<usize, StoreError> {
        let statement = "
            UPDATE alert SET status = ?4
            WHERE server = ?1 AND tool = ?2 AND change_type = ?3 AND status = 'open'
                AND instr(?5, id) = 0";
        // Ids have one length, so none is found in another.
        let (status, except) = (status.as_str(), except.join(" "));
        self.execute(statement, (server.0, tool, change_type, status, except))
    }

    /// Forgets the oldest alerts of a server that were neither approved nor are open: only so many are kept.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn forget_old_alerts(&self, server: ServerId, most: usize) -> Result<usize, StoreError> {
        let statement = "
            DELETE FROM alert WHERE id IN (
                SELECT id FROM alert WHERE server = ?1 AND status = ?2
                ORDER BY last_seen DESC, id LIMIT -1 OFFSET ?3)";
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.execute(statement, (server.0, AlertStatus::Closed.as_str(), most))
    }

    /// The tools of a server that have open alerts.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn alerted_tools(&self, server: ServerId) -> Result<Vec<String>, StoreError> {
        let query = "
            SELECT DISTINCT tool FROM alert WHERE server = ?1 AND status = 'open' ORDER BY tool";
        self.rows(query, [server.0], |row| row.get(0))
    }

    /// The alerts that are wanted, the oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn alerts(&self, filter: &AlertFilter) -> Result<Vec<Alert>, StoreError> {
        let query = format!(
            "{SELECT} WHERE last_seen >= ?1 AND (?2 IS NULL OR status = ?2)
             ORDER BY alert.first_seen, alert.rowid"
        );
        let since = filter.since.map(kept_time).unwrap_or_default();
        let status = filter.status.map(AlertStatus::as_str);
        let mut alerts = self.rows(&query, (since, status), alert)?;
        let wanted = |list: &[String], word: &String| list.is_empty() || list.contains(word);
        alerts.retain(|alert| {
            wanted(&filter.severities, &alert.severity)
                && wanted(&filter.tools, &alert.tool)
                && wanted(&filter.servers, &alert.server.name)
        });
        Ok(alerts)
    }

    /// The alert of an id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn alert(&self, id: &str) -> Result<Option<Alert>, StoreError> {
        let query = format!("{SELECT} WHERE alert.id = ?1");
        let found = self.rows(&query, [id], alert)?;
        Ok(found.into_iter().next())
    }
}

fn alert(row: &Row<'_>) -> rusqlite::Result<Alert> {
    let word: String = row.get(7)?;
    let known = [
        AlertStatus::Open,
        AlertStatus::Approved,
        AlertStatus::Closed,
    ];
    let status = known.into_iter().find(|status| status.as_str() == word);
    Ok(Alert {
        id: row.get(0)?,
        server: ServerKey {
            name: row.get(1)?,
            scope: row.get(2)?,
        },
        tool: row.get(3)?,
        change_type: row.get(4)?,
        severity: row.get(5)?,
        class: row.get(6)?,
        status: status.ok_or_else(|| invalid(7, UnknownStatus(word)))?,
        first_seen: time(row, 8)?,
        last_seen: time(row, 9)?,
        times: row.get(10)?,
        document: row.get(11)?,
        old_form: row.get(12)?,
    })
}
