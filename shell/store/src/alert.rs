use jiff::Timestamp;
use rusqlite::Row;
use thiserror::Error;

use crate::error::StoreError;
use crate::server::{ServerId, ServerKey};
use crate::store::{Store, invalid_column, time_column, time_text};

/// A notice of drift. The same drift is one alert, however often it is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Identifies the drift: the same baseline and the same sighting give the same id.
    pub id: String,
    /// The server.
    pub server: ServerKey,
    /// The tool.
    pub tool: String,
    /// `schema_change`, `response_change` or `behavior_change`.
    pub change_type: String,
    /// `low`, `medium` or `high`.
    pub severity: String,
    /// The most severe class of its changes.
    pub class: String,
    /// Its status.
    pub status: AlertStatus,
    /// When it was seen first.
    pub first_seen: Timestamp,
    /// When it was seen last.
    pub last_seen: Timestamp,
    /// How often it was seen.
    pub times: u32,
    /// All details, as JSON.
    pub document: String,
    /// The alert as the toolwatch program writes it, as JSON.
    pub toolwatch_document: String,
}

/// The status of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertStatus {
    /// The tool still does not match its pin.
    Open,
    /// A user approved the drift.
    Approved,
    /// The tool matches its pin again, or has drifted further.
    Closed,
}

impl AlertStatus {
    /// The word for it in the store and in output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Approved => "approved",
            Self::Closed => "closed",
        }
    }
}

/// An alert to raise.
#[derive(Clone, Debug)]
pub struct NewAlert<'a> {
    /// Identifies the drift.
    pub id: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// `schema_change`, `response_change` or `behavior_change`.
    pub change_type: &'a str,
    /// `low`, `medium` or `high`.
    pub severity: &'a str,
    /// The most severe class of its changes.
    pub class: &'a str,
    /// The time of the drift.
    pub at: Timestamp,
    /// All details, as JSON.
    pub document: &'a str,
    /// The alert as the toolwatch program writes it, as JSON.
    pub toolwatch_document: &'a str,
}

/// Whether an alert is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertNovelty {
    /// The alert has not been reported yet.
    New,
    /// The alert is already known.
    Known,
}

/// Selects alerts; all given conditions must hold.
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
struct UnknownAlertStatus(String);

impl Store {
    /// Raises an alert, or counts a known one. A closed alert is reopened.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn raise_alert(
        &self,
        server: ServerId,
        alert: &NewAlert<'_>,
    ) -> Result<AlertNovelty, StoreError> {
        let known = "SELECT status FROM alert WHERE id = ?1";
        let status: Vec<String> = self.rows(known, [alert.id], |row| row.get(0))?;
        if let Some(status) = status.first() {
            let again = "
                UPDATE alert SET last_seen = ?2, times = times + 1, status = 'open' WHERE id = ?1";
            self.execute(again, (alert.id, time_text(alert.at)))?;
            // Drift that was approved and then came back is reported again.
            return Ok(if status == "approved" {
                AlertNovelty::New
            } else {
                AlertNovelty::Known
            });
        }
        self.add_alert(server, alert, AlertStatus::Open)?;
        Ok(AlertNovelty::New)
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
                time_text(alert.at),
                alert.document,
                alert.toolwatch_document,
            ),
        )?;
        Ok(added > 0)
    }

    /// Settles the open alerts of a tool and a change type, except for those that still apply.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn settle_alerts(
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
        // All ids have the same length, so none is a substring of another.
        let (status, except) = (status.as_str(), except.join(" "));
        self.execute(statement, (server.0, tool, change_type, status, except))
    }

    /// Deletes the oldest closed alerts of a server; keeps the newest `most`.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn prune_alerts(&self, server: ServerId, most: usize) -> Result<usize, StoreError> {
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

    /// The selected alerts, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn alerts(&self, filter: &AlertFilter) -> Result<Vec<Alert>, StoreError> {
        let query = format!(
            "{SELECT} WHERE last_seen >= ?1 AND (?2 IS NULL OR status = ?2)
             ORDER BY alert.first_seen, alert.rowid"
        );
        let since = filter.since.map(time_text).unwrap_or_default();
        let status = filter.status.map(AlertStatus::as_str);
        let mut alerts = self.rows(&query, (since, status), alert_from_row)?;
        let wanted = |list: &[String], word: &String| list.is_empty() || list.contains(word);
        alerts.retain(|alert| {
            wanted(&filter.severities, &alert.severity)
                && wanted(&filter.tools, &alert.tool)
                && wanted(&filter.servers, &alert.server.name)
        });
        Ok(alerts)
    }

    /// The alert with this id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn alert(&self, id: &str) -> Result<Option<Alert>, StoreError> {
        let query = format!("{SELECT} WHERE alert.id = ?1");
        let found = self.rows(&query, [id], alert_from_row)?;
        Ok(found.into_iter().next())
    }
}

fn alert_from_row(row: &Row<'_>) -> rusqlite::Result<Alert> {
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
        status: status.ok_or_else(|| invalid_column(7, UnknownAlertStatus(word)))?,
        first_seen: time_column(row, 8)?,
        last_seen: time_column(row, 9)?,
        times: row.get(10)?,
        document: row.get(11)?,
        toolwatch_document: row.get(12)?,
    })
}
