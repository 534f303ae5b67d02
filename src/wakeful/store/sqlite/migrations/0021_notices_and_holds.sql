-- Notices and their delivery; whether all agents may run; providers that let nobody in.
CREATE TABLE notices (
    notice_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    cause TEXT NOT NULL,
    about TEXT NOT NULL,
    words TEXT NOT NULL,
    created_seq INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    sent_to TEXT NOT NULL,
    error TEXT NOT NULL,
    settled_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX notices_by_age ON notices (created_at, notice_id);
CREATE INDEX notices_of_agent ON notices (agent, created_seq);
CREATE TABLE runtime_holds (
    agent INTEGER NOT NULL PRIMARY KEY,
    control TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE parked_providers (
    provider TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    found_by TEXT NOT NULL,
    model_ref TEXT NOT NULL,
    failure_kind TEXT NOT NULL,
    message TEXT NOT NULL,
    since INTEGER NOT NULL,
    probes INTEGER NOT NULL,
    probes_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
