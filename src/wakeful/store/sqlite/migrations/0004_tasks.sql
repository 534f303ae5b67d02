-- Runs of tasks and packages, what happened to each, and agents that came in bundles. They are no view of the log:
-- rebuilding leaves them alone.

CREATE TABLE task_runs (
    number      INTEGER PRIMARY KEY,
    run_id      TEXT NOT NULL UNIQUE,
    kind        TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    status      TEXT NOT NULL,
    record      TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE task_run_events (
    run_id      TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    name        TEXT NOT NULL,
    payload     TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE imported_agents (
    slug        TEXT NOT NULL PRIMARY KEY,
    definition  TEXT NOT NULL,
    imported_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
