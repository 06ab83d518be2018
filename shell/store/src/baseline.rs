use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row};
use thiserror::Error;
use toolwarden_model::{Fingerprint, Format};

use crate::error::StoreError;
use crate::server::ServerId;
use crate::store::{Store, invalid_column, time_column, time_text};

/// The approved state of a tool, and who approved it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// Its row id in the store; later baselines have greater ids.
    pub id: i64,
    /// The tool.
    pub tool: String,
    /// How the baseline was created.
    pub origin: BaselineOrigin,
    /// The definition; `None` for an imported hash or a retired tool.
    pub definition: Option<StoredDefinition>,
    /// The shape of its results, as JSON.
    pub shape: Option<String>,
    /// The hashes of the toolwatch program.
    pub old: ToolwatchHashes,
    /// The label that its user gave it.
    pub version: String,
    /// Who approved it.
    pub approval: Approval,
}

/// A reference to a stored definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredDefinition {
    /// The fingerprint of its text.
    pub fingerprint: Fingerprint,
    /// The format of the text.
    pub format: Format,
}

/// The hashes of the toolwatch program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolwatchHashes {
    /// The hash of the definition.
    pub schema: Option<String>,
    /// The hash of the results.
    pub response: Option<String>,
}

/// Who approved a baseline or change, when, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub why: Option<String>,
}

/// How a baseline was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaselineOrigin {
    /// A user pinned it with a command.
    Pinned,
    /// A check saw the tool for the first time.
    Registered,
    /// A user approved drift.
    Approved,
    /// Imported as a hash of the toolwatch program.
    Imported,
    /// The definition behind an imported hash was seen.
    Adopted,
    /// Results were seen for the first time.
    Learned,
    /// The tool was retired.
    Retired,
}

impl BaselineOrigin {
    const ALL: [Self; 7] = [
        Self::Pinned,
        Self::Registered,
        Self::Approved,
        Self::Imported,
        Self::Adopted,
        Self::Learned,
        Self::Retired,
    ];

    /// The word for it in the store and in output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Registered => "registered",
            Self::Approved => "approved",
            Self::Imported => "imported",
            Self::Adopted => "adopted",
            Self::Learned => "learned",
            Self::Retired => "retired",
        }
    }
}

/// A baseline to be added.
#[derive(Clone, Debug)]
pub struct NewBaseline<'b> {
    /// The tool.
    pub tool: &'b str,
    /// How the baseline was created.
    pub origin: BaselineOrigin,
    /// The definition and its text.
    pub definition: Option<(StoredDefinition, &'b str)>,
    /// The shape of its results, as JSON.
    pub shape: Option<String>,
    /// The hashes of the toolwatch program.
    pub old: ToolwatchHashes,
    /// The label that its user gave it.
    pub version: &'b str,
    /// Who approved it.
    pub approval: &'b Approval,
}

/// One change of a tool that was approved on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedChange {
    /// The id of the change.
    pub change: String,
    /// The definition it was seen in.
    pub definition: StoredDefinition,
    /// Who approved it.
    pub approval: Approval,
}

#[derive(Debug, Error)]
#[error("unknown word `{0}`")]
struct UnknownBaselineWord(String);

const COLUMNS: &str = "id, tool, origin, definition, format, shape, schema_hash, response_hash, \
                       version, approved_by, approved_at, why";

impl Store {
    /// The current baseline of each tool of a server, sorted by name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn baselines(&self, server: ServerId) -> Result<Vec<Baseline>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM baseline
             WHERE id IN (SELECT max(id) FROM baseline WHERE server = ?1 GROUP BY tool)
               AND origin <> 'retired'
             ORDER BY tool"
        );
        self.rows(&query, [server.0], baseline_from_row)
    }

    /// The current baseline of a tool; `None` for a retired tool.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn baseline(&self, server: ServerId, tool: &str) -> Result<Option<Baseline>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM baseline
             WHERE id = (SELECT max(id) FROM baseline WHERE server = ?1 AND tool = ?2)
               AND origin <> 'retired'"
        );
        let mut found = self.rows(&query, (server.0, tool), baseline_from_row)?;
        Ok(found.pop())
    }

    /// The last baseline of a tool, even of a retired one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn last_baseline(&self, server: ServerId, tool: &str) -> Result<Option<i64>, StoreError> {
        let query = "SELECT max(id) FROM baseline WHERE server = ?1 AND tool = ?2";
        let found: Vec<Option<i64>> = self.rows(query, (server.0, tool), |row| row.get(0))?;
        Ok(found.into_iter().flatten().next())
    }

    /// Every tool of a server that was ever pinned, sorted.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn tools(&self, server: ServerId) -> Result<Vec<String>, StoreError> {
        let query = "SELECT DISTINCT tool FROM baseline WHERE server = ?1 ORDER BY tool";
        self.rows(query, [server.0], |row| row.get(0))
    }

    /// Every baseline a tool has had, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn history(&self, server: ServerId, tool: &str) -> Result<Vec<Baseline>, StoreError> {
        let query =
            format!("SELECT {COLUMNS} FROM baseline WHERE server = ?1 AND tool = ?2 ORDER BY id");
        self.rows(&query, (server.0, tool), baseline_from_row)
    }

    /// Adds a baseline; returns its row id.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn add_baseline(&self, server: ServerId, new: &NewBaseline<'_>) -> Result<i64, StoreError> {
        let NewBaseline {
            tool,
            origin,
            definition,
            shape,
            old,
            version,
            approval,
        } = new;
        if let Some((kept, text)) = definition {
            self.save_definition(kept.fingerprint, text)?;
        }
        let kept = definition.as_ref().map(|(kept, _)| kept);
        let statement = "
            INSERT INTO baseline (server, tool, origin, definition, format, shape, schema_hash,
                response_hash, version, approved_by, approved_at, why)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        self.execute(
            statement,
            (
                server.0,
                tool,
                origin.as_str(),
                kept.map(|kept| kept.fingerprint.as_bytes().as_slice()),
                kept.map(|kept| kept.format.id()),
                shape,
                &old.schema,
                &old.response,
                version,
                &approval.by,
                time_text(approval.at),
                &approval.why,
            ),
        )?;
        self.sql(|it| Ok(it.last_insert_rowid()))
    }

    /// Stores the text of a definition.
    pub(crate) fn save_definition(
        &self,
        fingerprint: Fingerprint,
        text: &str,
    ) -> Result<(), StoreError> {
        let statement = "INSERT INTO definition VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        self.execute(statement, (fingerprint.as_bytes().as_slice(), text))?;
        Ok(())
    }

    /// The text of a definition.
    ///
    /// # Errors
    /// The store cannot be read, or the stored text does not match the fingerprint.
    pub fn definition(&self, fingerprint: Fingerprint) -> Result<String, StoreError> {
        let query = "SELECT text FROM definition WHERE fingerprint = ?1";
        let text: Option<String> = self.sql(|it| {
            let mut statement = it.prepare_cached(query)?;
            let row = statement.query_row([fingerprint.as_bytes().as_slice()], |row| row.get(0));
            row.optional()
        })?;
        let text = text.ok_or_else(|| self.damaged_error("a definition is missing"))?;
        if Fingerprint::of_wire(&text) != fingerprint {
            return Err(self.damaged_error("a definition does not match its fingerprint"));
        }
        Ok(text)
    }

    /// Approves one change against a baseline.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn approve_change(
        &self,
        baseline: i64,
        change: &str,
        definition: StoredDefinition,
        approval: &Approval,
    ) -> Result<(), StoreError> {
        let statement = "
            INSERT INTO approved_change (baseline, change, definition, format, approved_by,
                approved_at, why)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.execute(
            statement,
            (
                baseline,
                change,
                definition.fingerprint.as_bytes().as_slice(),
                definition.format.id(),
                &approval.by,
                time_text(approval.at),
                &approval.why,
            ),
        )?;
        Ok(())
    }

    /// The changes approved against a baseline.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn approved_changes(&self, baseline: i64) -> Result<Vec<ApprovedChange>, StoreError> {
        let query = "
            SELECT change, definition, format, approved_by, approved_at, why
            FROM approved_change WHERE baseline = ?1 ORDER BY id";
        self.rows(query, [baseline], |row| {
            Ok(ApprovedChange {
                change: row.get(0)?,
                definition: StoredDefinition {
                    fingerprint: Fingerprint::from_bytes(row.get(1)?),
                    format: format_column(row, 2)?,
                },
                approval: approval_columns(row, 3)?,
            })
        })
    }

    /// How often results were compared with a baseline.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn comparison_count(&self, baseline: i64) -> Result<u32, StoreError> {
        let query = "SELECT times FROM look WHERE baseline = ?1";
        let times = self.rows(query, [baseline], |row| row.get(0))?;
        Ok(times.first().copied().unwrap_or_default())
    }

    /// Counts a comparison of results with a baseline; returns the new count.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn count_comparison(&self, baseline: i64) -> Result<u32, StoreError> {
        let statement = "
            INSERT INTO look VALUES (?1, 1) ON CONFLICT DO UPDATE SET times = times + 1
            RETURNING times";
        self.sql(|it| {
            it.prepare_cached(statement)?
                .query_row([baseline], |row| row.get(0))
        })
    }
}

fn baseline_from_row(row: &Row<'_>) -> rusqlite::Result<Baseline> {
    Ok(Baseline {
        id: row.get(0)?,
        tool: row.get(1)?,
        origin: origin_column(row, 2)?,
        definition: definition_ref_column(row, 3)?,
        shape: row.get(5)?,
        old: ToolwatchHashes {
            schema: row.get(6)?,
            response: row.get(7)?,
        },
        version: row.get(8)?,
        approval: approval_columns(row, 9)?,
    })
}

/// Reads a definition's fingerprint from a column and its format from the next.
pub(crate) fn definition_ref_column(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<StoredDefinition>> {
    let fingerprint: Option<[u8; 32]> = row.get(column)?;
    let Some(fingerprint) = fingerprint else {
        return Ok(None);
    };
    Ok(Some(StoredDefinition {
        fingerprint: Fingerprint::from_bytes(fingerprint),
        format: format_column(row, column + 1)?,
    }))
}

fn approval_columns(row: &Row<'_>, column: usize) -> rusqlite::Result<Approval> {
    Ok(Approval {
        by: row.get(column)?,
        at: time_column(row, column + 1)?,
        why: row.get(column + 2)?,
    })
}

fn format_column(row: &Row<'_>, column: usize) -> rusqlite::Result<Format> {
    let word: String = row.get(column)?;
    word.parse().map_err(|error| invalid_column(column, error))
}

fn origin_column(row: &Row<'_>, column: usize) -> rusqlite::Result<BaselineOrigin> {
    let word: String = row.get(column)?;
    let mut known = BaselineOrigin::ALL.into_iter();
    let origin = known.find(|origin| origin.as_str() == word);
    origin.ok_or_else(|| invalid_column(column, UnknownBaselineWord(word)))
}
