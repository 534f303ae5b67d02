-- Workflows, one row a revision. They are no view of the log: rebuilding leaves them alone, and a run has its own copy.

CREATE TABLE workflows (
    workflow_id TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    name        TEXT NOT NULL,
    graph       TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    key         TEXT UNIQUE,
    PRIMARY KEY (workflow_id, revision)
) STRICT, WITHOUT ROWID;
