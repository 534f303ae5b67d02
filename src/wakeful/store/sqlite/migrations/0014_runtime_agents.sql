-- Agents of a runtime, and when a runtime looks at what is due.
ALTER TABLE wakes ADD COLUMN alarm INTEGER;
DROP INDEX wakes_due;
CREATE INDEX wakes_by_alarm ON wakes (alarm) WHERE alarm IS NOT NULL;
CREATE TABLE runtime_agents (
    agent INTEGER NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    visibility TEXT NOT NULL,
    ownership TEXT NOT NULL,
    profile_preset TEXT NOT NULL,
    parent TEXT,
    source TEXT NOT NULL,
    revision TEXT NOT NULL,
    revised_at INTEGER,
    created_at INTEGER NOT NULL,
    control TEXT NOT NULL,
    cause TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    resumes_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX runtime_agents_by_age ON runtime_agents (created_at);
CREATE INDEX runtime_agents_held ON runtime_agents (changed_at) WHERE control <> 'running';
