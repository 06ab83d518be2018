use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row};
use thiserror::Error;
use toolwarden_model::{Fingerprint, Format};

use crate::error::StoreError;
use crate::server::ServerId;
use crate::store::{Store, invalid, kept_time, time};

/// What a tool is held to, and who approved it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// Its place in the store; later ones have greater numbers.
    pub id: i64,
    /// The tool.
    pub tool: String,
    /// How it came to be.
    pub origin: Origin,
    /// The definition; none for an imported hash or a tool that was let go.
    pub definition: Option<Kept>,
    /// The shape of its results, as JSON.
    pub shape: Option<String>,
    /// The hashes of the toolwatch program.
    pub old: OldHashes,
    /// The label its user gave it.
    pub version: String,
    /// Who approved it.
    pub approval: Approval,
}

/// A definition that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Names its text.
    pub fingerprint: Fingerprint,
    /// How the text is read.
    pub format: Format,
}

/// The hashes of the toolwatch program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OldHashes {
    /// Of the definition.
    pub schema: Option<String>,
    /// Of the results.
    pub response: Option<String>,
}

/// Who approved something, when, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub why: Option<String>,
}

/// How a baseline came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was pinned by command.
    Pinned,
    /// A check saw the tool for the first time.
    Registered,
    /// Drift was approved.
    Approved,
    /// A hash of the toolwatch program.
    Imported,
    /// The definition behind an imported hash was seen.
    Adopted,
    /// Results were seen for the first time.
    Learned,
    /// The tool was let go.
    Retired,
}

impl Origin {
    const ALL: [Self; 7] = [
        Self::Pinned,
        Self::Registered,
        Self::Approved,
        Self::Imported,
        Self::Adopted,
        Self::Learned,
        Self::Retired,
    ];

    /// The word it is kept and shown as.
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
    /// How it came to be.
    pub origin: Origin,
    /// The definition and its text.
    pub definition: Option<(Kept, &'b str)>,
    /// The shape of its results, as JSON.
    pub shape: Option<String>,
    /// The hashes of the toolwatch program.
    pub old: OldHashes,
    /// The label its user gave it.
    pub version: &'b str,
    /// Who approved it.
    pub approval: &'b Approval,
}

/// One change of a tool that was approved by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedChange {
    /// The id of the change.
    pub change: String,
    /// The definition it was seen in.
    pub definition: Kept,
    /// Who approved it.
    pub approval: Approval,
}

#[derive(Debug, Error)]
#[error("unknown word `{0}`")]
struct UnknownWord(String);

const COLUMNS: &str = "id, tool, origin, definition, format, shape, schema_hash, response_hash, \
                       version, approved_by, approved_at, why";

impl Store {
    /// What each tool of a server is held to now, sorted by name.
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
        self.rows(&query, [server.0], baseline)
    }

    /// What a tool is held to now; none for one that was let go.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn baseline(&self, server: ServerId, tool: &str) -> Result<Option<Baseline>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM baseline
             WHERE id = (SELECT max(id) FROM baseline WHERE server = ?1 AND tool = ?2)
               AND origin <> 'retired'"
        );
        let mut found = self.rows(&query, (server.0, tool), baseline)?;
        Ok(found.pop())
    }

    /// The last baseline of a tool, also of one that was let go.
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

    /// Everything a tool was ever held to, the first one first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn history(&self, server: ServerId, tool: &str) -> Result<Vec<Baseline>, StoreError> {
        let query =
            format!("SELECT {COLUMNS} FROM baseline WHERE server = ?1 AND tool = ?2 ORDER BY id");
        self.rows(&query, (server.0, tool), baseline)
    }

    /// Adds a baseline; gives its place.
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
            self.keep_definition(kept.fingerprint, text)?;
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
                kept_time(approval.at),
                &approval.why,
            ),
        )?;
        self.sql(|it| Ok(it.last_insert_rowid()))
    }

    /// Keeps the text of a definition.
    pub(crate) fn keep_definition(
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
    /// The store cannot be read, or what it holds is not what was put in.
    pub fn definition(&self, fingerprint: Fingerprint) -> Result<String, StoreError> {
        let query = "SELECT text FROM definition WHERE fingerprint = ?1";
        let text: Option<String> = self.sql(|it| {
            let mut statement = it.prepare_cached(query)?;
            let row = statement.query_row([fingerprint.as_bytes().as_slice()], |row| row.get(0));
            row.optional()
        })?;
        let text = text.ok_or_else(|| self.damaged("a definition is missing"))?;
        if Fingerprint::of_wire(&text) != fingerprint {
            return Err(self.damaged("a definition is not the one that was pinned"));
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
        definition: Kept,
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
                kept_time(approval.at),
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
                definition: Kept {
                    fingerprint: Fingerprint::from_bytes(row.get(1)?),
                    format: format(row, 2)?,
                },
                approval: approval(row, 3)?,
            })
        })
    }

    /// How many comparisons of results with a baseline there were.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn looks(&self, baseline: i64) -> Result<u32, StoreError> {
        let query = "SELECT times FROM look WHERE baseline = ?1";
        let times = self.rows(query, [baseline], |row| row.get(0))?;
        Ok(times.first().copied().unwrap_or_default())
    }

    /// Counts a comparison of results with a baseline; gives how many there were, this one included.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn count_look(&self, baseline: i64) -> Result<u32, StoreError> {
        let statement = "
            INSERT INTO look VALUES (?1, 1) ON CONFLICT DO UPDATE SET times = times + 1
            RETURNING times";
        self.sql(|it| {
            it.prepare_cached(statement)?
                .query_row([baseline], |row| row.get(0))
        })
    }
}

fn baseline(row: &Row<'_>) -> rusqlite::Result<Baseline> {
    Ok(Baseline {
        id: row.get(0)?,
        tool: row.get(1)?,
        origin: origin(row, 2)?,
        definition: kept(row, 3)?,
        shape: row.get(5)?,
        old: OldHashes {
            schema: row.get(6)?,
            response: row.get(7)?,
        },
        version: row.get(8)?,
        approval: approval(row, 9)?,
    })
}

/// A definition in a column and its format in the next.
pub(crate) fn kept(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Kept>> {
    let fingerprint: Option<[u8; 32]> = row.get(column)?;
    let Some(fingerprint) = fingerprint else {
        return Ok(None);
    };
    Ok(Some(Kept {
        fingerprint: Fingerprint::from_bytes(fingerprint),
        format: format(row, column + 1)?,
    }))
}

fn approval(row: &Row<'_>, column: usize) -> rusqlite::Result<Approval> {
    Ok(Approval {
        by: row.get(column)?,
        at: time(row, column + 1)?,
        why: row.get(column + 2)?,
    })
}

fn format(row: &Row<'_>, column: usize) -> rusqlite::Result<Format> {
    let word: String = row.get(column)?;
    word.parse().map_err(|error| invalid(column, error))
}

fn origin(row: &Row<'_>, column: usize) -> rusqlite::Result<Origin> {
    let word: String = row.get(column)?;
    let mut known = Origin::ALL.into_iter();
    let origin = known.find(|origin| origin.as_str() == word);
    origin.ok_or_else(|| invalid(column, UnknownWord(word)))
}
