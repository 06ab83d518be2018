//! The schema of the file, as migrations. A released migration never changes.

/// Identifies the file as a Toolwarden store: `TWAR` in ASCII.
pub(crate) const APPLICATION_ID: i64 = 0x5457_4152;

/// The migrations, each from one schema version to the next.
pub(crate) const STEPS: &[&str] = &[
    "
CREATE TABLE setting (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;

CREATE TABLE server (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    scope      TEXT NOT NULL,
    sealed     INTEGER NOT NULL,
    first_seen TEXT NOT NULL,
    UNIQUE (name, scope)
) STRICT;

CREATE TABLE definition (
    fingerprint BLOB PRIMARY KEY,
    text        TEXT NOT NULL
) STRICT;

CREATE TABLE baseline (
    id            INTEGER PRIMARY KEY,
    server        INTEGER NOT NULL REFERENCES server,
    tool          TEXT NOT NULL,
    origin        TEXT NOT NULL,
    definition    BLOB REFERENCES definition,
    format        TEXT,
    shape         TEXT,
    schema_hash   TEXT,
    response_hash TEXT,
    version       TEXT NOT NULL,
    approved_by   TEXT NOT NULL,
    approved_at   TEXT NOT NULL,
    why           TEXT
) STRICT;
CREATE INDEX baseline_of_tool ON baseline (server, tool, id);
CREATE TRIGGER baseline_is_not_rewritten BEFORE UPDATE ON baseline
BEGIN SELECT RAISE (ABORT, 'baselines are only ever added'); END;
CREATE TRIGGER baseline_is_not_removed BEFORE DELETE ON baseline
BEGIN SELECT RAISE (ABORT, 'baselines are only ever added'); END;

CREATE TABLE approved_change (
    id          INTEGER PRIMARY KEY,
    baseline    INTEGER NOT NULL REFERENCES baseline,
    change      TEXT NOT NULL,
    definition  BLOB NOT NULL REFERENCES definition,
    format      TEXT NOT NULL,
    approved_by TEXT NOT NULL,
    approved_at TEXT NOT NULL,
    why         TEXT
) STRICT;
CREATE INDEX approved_change_of_baseline ON approved_change (baseline);

CREATE TABLE sighting (
    server        INTEGER NOT NULL REFERENCES server,
    tool          TEXT NOT NULL,
    definition    BLOB REFERENCES definition,
    format        TEXT,
    shape         TEXT,
    response_hash TEXT,
    version       TEXT NOT NULL,
    seen_at       TEXT NOT NULL,
    PRIMARY KEY (server, tool)
) STRICT;

CREATE TABLE alert (
    id          TEXT PRIMARY KEY,
    server      INTEGER NOT NULL REFERENCES server,
    tool        TEXT NOT NULL,
    change_type TEXT NOT NULL,
    severity    TEXT NOT NULL,
    class       TEXT NOT NULL,
    status      TEXT NOT NULL,
    first_seen  TEXT NOT NULL,
    last_seen   TEXT NOT NULL,
    times       INTEGER NOT NULL,
    document    TEXT NOT NULL,
    old_form    TEXT NOT NULL
) STRICT;
CREATE INDEX alert_of_tool ON alert (server, tool, status);

CREATE TABLE look (
    baseline INTEGER PRIMARY KEY REFERENCES baseline,
    times    INTEGER NOT NULL
) STRICT;

CREATE TABLE observed_shape (
    server INTEGER NOT NULL REFERENCES server,
    tool   TEXT NOT NULL,
    hour   TEXT NOT NULL,
    shape  TEXT NOT NULL,
    PRIMARY KEY (server, tool, hour)
) STRICT;
",
    "
CREATE TABLE audit_record (
    seq       INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    principal TEXT,
    tool      TEXT,
    session   TEXT,
    code      TEXT NOT NULL,
    allowed   INTEGER,
    body      TEXT NOT NULL,
    hash      BLOB NOT NULL
) STRICT;
CREATE INDEX audit_record_at ON audit_record (at);

CREATE TABLE audit_head (
    id              INTEGER PRIMARY KEY CHECK (id = 1),
    seq             INTEGER NOT NULL,
    hash            BLOB NOT NULL,
    removed_through INTEGER NOT NULL,
    removed_hash    BLOB NOT NULL
) STRICT;
INSERT INTO audit_head VALUES (1, 0, zeroblob(32), 0, zeroblob(32));

CREATE TRIGGER audit_record_is_not_rewritten BEFORE UPDATE ON audit_record
BEGIN SELECT RAISE (ABORT, 'records are only ever added'); END;
CREATE TRIGGER audit_record_is_not_removed BEFORE DELETE ON audit_record
WHEN old.seq > (SELECT removed_through FROM audit_head)
BEGIN SELECT RAISE (ABORT, 'only records that a checkpoint names are removed'); END;
CREATE TRIGGER audit_head_only_moves_on BEFORE UPDATE ON audit_head
WHEN new.seq < old.seq OR new.removed_through < old.removed_through
    OR new.removed_through > new.seq
BEGIN SELECT RAISE (FAIL, 'the head only moves on'); END;
CREATE TRIGGER audit_head_is_not_removed BEFORE DELETE ON audit_head
BEGIN SELECT RAISE (ABORT, 'there is always a head'); END;
",
    "
CREATE TABLE notice (
    id       TEXT PRIMARY KEY,
    document TEXT NOT NULL
) STRICT;

CREATE TABLE delivery (
    id     INTEGER PRIMARY KEY,
    target TEXT NOT NULL,
    notice TEXT NOT NULL REFERENCES notice,
    status TEXT NOT NULL,
    tries  INTEGER NOT NULL,
    error  TEXT,
    at     TEXT NOT NULL,
    UNIQUE (target, notice)
) STRICT;
CREATE INDEX delivery_of_notice ON delivery (notice);
CREATE INDEX delivery_in_status ON delivery (status, id);

CREATE INDEX baseline_of_definition ON baseline (id) WHERE origin <> 'learned';
",
    "
CREATE INDEX baseline_with_definition ON baseline (definition);
CREATE INDEX approved_change_with_definition ON approved_change (definition);
CREATE INDEX sighting_with_definition ON sighting (definition);
CREATE INDEX alert_of_server ON alert (server, status, last_seen);
",
    "
-- A server that was left open on purpose: further tools are pinned when they are first seen. Servers that
-- were named and not sealed were left open; tools from files had no list as a whole until now.
ALTER TABLE server ADD COLUMN open INTEGER NOT NULL DEFAULT 0;
UPDATE server SET open = 1 WHERE NOT sealed AND name <> 'local';
",
];
