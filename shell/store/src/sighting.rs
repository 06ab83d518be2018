use jiff::Timestamp;
use rusqlite::Row;

use crate::baseline::{Kept, kept};
use crate::error::StoreError;
use crate::server::ServerId;
use crate::store::{Store, kept_time, time};

/// What was last seen of a tool that is not as it was pinned; it waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The tool.
    pub tool: String,
    /// The definition; none for a tool that was not there.
    pub definition: Option<Kept>,
    /// The shape of the results, as JSON.
    pub shape: Option<String>,
    /// The toolwatch hash of the results.
    pub response_hash: Option<String>,
    /// The label its user gave it.
    pub version: String,
    /// When.
    pub at: Timestamp,
}

/// A sighting to be kept.
#[derive(Clone, Debug)]
pub struct NewSighting<'s> {
    /// The tool.
    pub tool: &'s str,
    /// The definition and its text; none for a tool that was not there.
    pub definition: Option<(Kept, &'s str)>,
    /// The shape of the results, as JSON.
    pub shape: Option<String>,
    /// The toolwatch hash of the results.
    pub response_hash: Option<String>,
    /// The label its user gave it.
    pub version: &'s str,
    /// When.
    pub at: Timestamp,
}

impl Store {
    /// Keeps what was seen of a tool, instead of what was seen before.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn keep_sighting(&self, server: ServerId, new: &NewSighting<'_>) -> Result<(), StoreError> {
        if let Some((kept, text)) = &new.definition {
            self.keep_definition(kept.fingerprint, text)?;
        }
        let before = self.sighted_definition(server, new.tool)?;
        let kept = new.definition.as_ref().map(|(kept, _)| kept);
        let statement = "
            INSERT OR REPLACE INTO sighting (server, tool, definition, format, shape,
                response_hash, version, seen_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        self.execute(
            statement,
            (
                server.0,
                new.tool,
                kept.map(|kept| kept.fingerprint.as_bytes().as_slice()),
                kept.map(|kept| kept.format.id()),
                &new.shape,
                &new.response_hash,
                new.version,
                kept_time(new.at),
            ),
        )?;
        self.forget_definition(before)
    }

    fn sighted_definition(
        &self,
        server: ServerId,
        tool: &str,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let query = "SELECT definition FROM sighting WHERE server = ?1 AND tool = ?2";
        let found: Vec<Option<Vec<u8>>> = self.rows(query, (server.0, tool), |row| row.get(0))?;
        Ok(found.into_iter().next().flatten())
    }

    /// Forgets a definition that nothing refers to any more: a server that changes all the time would fill
    /// the store with what it once said.
    fn forget_definition(&self, fingerprint: Option<Vec<u8>>) -> Result<(), StoreError> {
        let Some(fingerprint) = fingerprint else {
            return Ok(());
        };
        let statement = "
            DELETE FROM definition WHERE fingerprint = ?1
                AND NOT EXISTS (SELECT 1 FROM baseline WHERE definition = ?1)
                AND NOT EXISTS (SELECT 1 FROM approved_change WHERE definition = ?1)
                AND NOT EXISTS (SELECT 1 FROM sighting WHERE definition = ?1)";
        self.execute(statement, [fingerprint])?;
        Ok(())
    }

    /// What waits for approval of one tool.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn sighting(&self, server: ServerId, tool: &str) -> Result<Option<Sighting>, StoreError> {
        let query = "
            SELECT tool, definition, format, shape, response_hash, version, seen_at FROM sighting
            WHERE server = ?1 AND tool = ?2";
        let found = self.rows(query, (server.0, tool), sighting)?;
        Ok(found.into_iter().next())
    }

    /// Everything of a server that waits for approval, sorted by tool.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn sightings(&self, server: ServerId) -> Result<Vec<Sighting>, StoreError> {
        let query = "
            SELECT tool, definition, format, shape, response_hash, version, seen_at FROM sighting
            WHERE server = ?1 ORDER BY tool";
        self.rows(query, [server.0], sighting)
    }

    /// Forgets what was seen of a tool: it is as pinned again, or was approved.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn drop_sighting(&self, server: ServerId, tool: &str) -> Result<(), StoreError> {
        let before = self.sighted_definition(server, tool)?;
        let statement = "DELETE FROM sighting WHERE server = ?1 AND tool = ?2";
        self.execute(statement, (server.0, tool))?;
        self.forget_definition(before)
    }

    /// The hourly shapes of a tool's results since a time, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn observed_shapes(
        &self,
        server: ServerId,
        tool: &str,
        since: Timestamp,
    ) -> Result<Vec<String>, StoreError> {
        let query = "
            SELECT shape FROM observed_shape WHERE server = ?1 AND tool = ?2 AND hour >= ?3
            ORDER BY hour";
        self.rows(query, (server.0, tool, hour(since)), |row| row.get(0))
    }

    /// Replaces the shape of the hour; forgets hours that are older than a time.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn keep_observed_shape(
        &self,
        server: ServerId,
        tool: &str,
        at: Timestamp,
        shape: &str,
        oldest: Timestamp,
    ) -> Result<(), StoreError> {
        let statement = "INSERT OR REPLACE INTO observed_shape VALUES (?1, ?2, ?3, ?4)";
        self.execute(statement, (server.0, tool, hour(at), shape))?;
        let statement = "DELETE FROM observed_shape WHERE server = ?1 AND tool = ?2 AND hour < ?3";
        self.execute(statement, (server.0, tool, hour(oldest)))?;
        Ok(())
    }

    /// Forgets the hourly shapes of a tool.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn drop_observed_shapes(&self, server: ServerId, tool: &str) -> Result<(), StoreError> {
        let statement = "DELETE FROM observed_shape WHERE server = ?1 AND tool = ?2";
        self.execute(statement, (server.0, tool))?;
        Ok(())
    }
}

fn sighting(row: &Row<'_>) -> rusqlite::Result<Sighting> {
    Ok(Sighting {
        tool: row.get(0)?,
        definition: kept(row, 1)?,
        shape: row.get(3)?,
        response_hash: row.get(4)?,
        version: row.get(5)?,
        at: time(row, 6)?,
    })
}

/// The hour of a time, as texts sort.
fn hour(at: Timestamp) -> String {
    kept_time(at).chars().take("2026-01-01T00".len()).collect()
}
