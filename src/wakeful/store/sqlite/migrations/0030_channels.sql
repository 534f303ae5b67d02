-- Phones that are told and that decide, what they wanted, and where they show approvals.
CREATE TABLE channels (
    name TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    kind TEXT NOT NULL,
    server TEXT NOT NULL,
    key_variable TEXT,
    scopes TEXT NOT NULL,
    allow_private INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    state TEXT NOT NULL,
    peer TEXT NOT NULL,
    candidates TEXT NOT NULL,
    pairing_until INTEGER NOT NULL,
    cursor TEXT NOT NULL,
    added_by TEXT NOT NULL,
    added_at INTEGER NOT NULL,
    paired_at INTEGER,
    heard_at INTEGER,
    strangers INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    sent_error TEXT NOT NULL,
    trouble TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE channel_inputs (
    input_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    channel TEXT NOT NULL,
    caller TEXT NOT NULL,
    verb TEXT NOT NULL,
    action_id TEXT,
    target TEXT NOT NULL,
    words TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    error TEXT NOT NULL,
    settled_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE channel_messages (
    action_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    channel TEXT NOT NULL,
    refs TEXT NOT NULL,
    is_closed INTEGER NOT NULL,
    attempts INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- What agents came to when they were last told of as a change.
CREATE TABLE told_results (
    agent INTEGER NOT NULL,
    source TEXT NOT NULL,
    digest TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (agent, source)
) STRICT, WITHOUT ROWID;
