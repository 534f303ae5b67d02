-- Messages that run a workflow, by the time they were taken in. Runs from before this table are not listed.
CREATE TABLE workflow_runs (
    message_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    admitted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX workflow_runs_by_age ON workflow_runs (admitted_at, message_id);
