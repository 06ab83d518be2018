use jiff::Timestamp;
use rusqlite::Row;

use crate::baseline::{StoredDefinition, definition_ref_column};
use crate::error::StoreError;
use crate::server::ServerId;
use crate::store::{Store, time_column, time_text};

/// The last observation of a tool that does not match its pin; it is pending approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The tool.
    pub tool: String,
    /// The definition; `None` if the server no longer listed the tool.
    pub definition: Option<StoredDefinition>,
    /// The shape of the results, as JSON.
    pub shape: Option<String>,
    /// The toolwatch hash of the results.
    pub response_hash: Option<String>,
    /// The label that its user gave it.
    pub version: String,
    /// The time of the observation.
    pub at: Timestamp,
}

/// A sighting to be stored.
#[derive(Clone, Debug)]
pub struct NewSighting<'s> {
    /// The tool.
    pub tool: &'s str,
    /// The definition and its text; `None` if the server no longer listed the tool.
    pub definition: Option<(StoredDefinition, &'s str)>,
    /// The shape of the results, as JSON.
    pub shape: Option<String>,
    /// The toolwatch hash of the results.
    pub response_hash: Option<String>,
    /// The label that its user gave it.
    pub version: &'s str,
    /// The time of the observation.
    pub at: Timestamp,
}

impl Store {
    /// Stores the sighting of a tool, replacing the previous one.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn save_sighting(&self, server: ServerId, new: &NewSighting<'_>) -> Result<(), StoreError> {
        if let Some((kept, text)) = &new.definition {
            self.save_definition(kept.fingerprint, text)?;
        }
        let before = self.sighting_definition(server, new.tool)?;
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
                time_text(new.at),
            ),
        )?;
        self.delete_unreferenced_definition(before)
    }

    fn sighting_definition(
        &self,
        server: ServerId,
        tool: &str,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let query = "SELECT definition FROM sighting WHERE server = ?1 AND tool = ?2";
        let found: Vec<Option<Vec<u8>>> = self.rows(query, (server.0, tool), |row| row.get(0))?;
        Ok(found.into_iter().next().flatten())
    }

    /// Deletes a definition that nothing references any more. Otherwise a server that changes all
    /// the time would fill the store with its old definitions.
    fn delete_unreferenced_definition(
        &self,
        fingerprint: Option<Vec<u8>>,
    ) -> Result<(), StoreError> {
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

    /// The sighting of one tool that is pending approval.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn sighting(&self, server: ServerId, tool: &str) -> Result<Option<Sighting>, StoreError> {
        let query = "
            SELECT tool, definition, format, shape, response_hash, version, seen_at FROM sighting
            WHERE server = ?1 AND tool = ?2";
        let found = self.rows(query, (server.0, tool), sighting_from_row)?;
        Ok(found.into_iter().next())
    }

    /// All sightings of a server that are pending approval, sorted by tool.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn sightings(&self, server: ServerId) -> Result<Vec<Sighting>, StoreError> {
        let query = "
            SELECT tool, definition, format, shape, response_hash, version, seen_at FROM sighting
            WHERE server = ?1 ORDER BY tool";
        self.rows(query, [server.0], sighting_from_row)
    }

    /// Deletes the sighting of a tool: the tool matches its pin again, or was approved.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn delete_sighting(&self, server: ServerId, tool: &str) -> Result<(), StoreError> {
        let before = self.sighting_definition(server, tool)?;
        let statement = "DELETE FROM sighting WHERE server = ?1 AND tool = ?2";
        self.execute(statement, (server.0, tool))?;
        self.delete_unreferenced_definition(before)
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
        self.rows(query, (server.0, tool, hour_text(since)), |row| row.get(0))
    }

    /// Replaces the shape of the hour; deletes the shapes of older hours.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn save_observed_shape(
        &self,
        server: ServerId,
        tool: &str,
        at: Timestamp,
        shape: &str,
        oldest: Timestamp,
    ) -> Result<(), StoreError> {
        let statement = "INSERT OR REPLACE INTO observed_shape VALUES (?1, ?2, ?3, ?4)";
        self.execute(statement, (server.0, tool, hour_text(at), shape))?;
        let statement = "DELETE FROM observed_shape WHERE server = ?1 AND tool = ?2 AND hour < ?3";
        self.execute(statement, (server.0, tool, hour_text(oldest)))?;
        Ok(())
    }

    /// Deletes the hourly shapes of a tool.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn delete_observed_shapes(&self, server: ServerId, tool: &str) -> Result<(), StoreError> {
        let statement = "DELETE FROM observed_shape WHERE server = ?1 AND tool = ?2";
        self.execute(statement, (server.0, tool))?;
        Ok(())
    }
}

fn sighting_from_row(row: &Row<'_>) -> rusqlite::Result<Sighting> {
    Ok(Sighting {
        tool: row.get(0)?,
        definition: definition_ref_column(row, 1)?,
        shape: row.get(3)?,
        response_hash: row.get(4)?,
        version: row.get(5)?,
        at: time_column(row, 6)?,
    })
}

/// The hour of a time, as text that sorts in time order.
fn hour_text(at: Timestamp) -> String {
    time_text(at).chars().take("2026-01-01T00".len()).collect()
}
