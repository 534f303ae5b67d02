-- The log and the rows that follow from it.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- seq and hash are the head of the agent's stream; owner, epoch and expires are its lease; rounds and the tokens are
-- what it has used in all, last_turn what the newest completed turn that reported tokens did.
CREATE TABLE agents (
    id        INTEGER PRIMARY KEY,
    agent_id  TEXT NOT NULL UNIQUE,
    name      TEXT NOT NULL DEFAULT '',
    seq       INTEGER NOT NULL DEFAULT 0,
    hash      BLOB NOT NULL,
    owner     TEXT,
    epoch     INTEGER NOT NULL DEFAULT 0,
    expires   REAL NOT NULL DEFAULT 0,
    rounds    INTEGER NOT NULL DEFAULT 0,
    input_tokens        INTEGER NOT NULL DEFAULT 0,
    output_tokens       INTEGER NOT NULL DEFAULT 0,
    total_tokens        INTEGER NOT NULL DEFAULT 0,
    cached_input_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens  INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens    INTEGER NOT NULL DEFAULT 0,
    audio_tokens        INTEGER NOT NULL DEFAULT 0,
    last_turn TEXT
) STRICT;

-- id = agent << 40 | seq: clustered on both, and long bodies stay on their page, which they would not in a table
-- WITHOUT ROWID (a body of 1,000 bytes takes 1.4 KB instead of 4.7). There is no other index on it.
CREATE TABLE events (
    id     INTEGER PRIMARY KEY,
    header BLOB NOT NULL,
    body   BLOB NOT NULL,
    hash   BLOB NOT NULL
) STRICT;

-- epoch counts claims; heard is the newest outsider's event of the turn.
CREATE TABLE turns (
    id             INTEGER PRIMARY KEY,
    turn_id        TEXT NOT NULL UNIQUE,
    agent          INTEGER NOT NULL,
    agent_name     TEXT NOT NULL,
    thread_id      TEXT NOT NULL,
    state          TEXT NOT NULL,
    first_seq      INTEGER NOT NULL,
    last_seq       INTEGER NOT NULL,
    window_from    INTEGER NOT NULL,
    turn_index     INTEGER NOT NULL,
    key            TEXT,
    fingerprint    TEXT NOT NULL,
    prompt_preview TEXT NOT NULL,
    waiting_for    TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    ended_at       INTEGER,
    heard          INTEGER NOT NULL,
    epoch          INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX turns_by_key ON turns (key) WHERE key IS NOT NULL;
CREATE INDEX turns_by_thread ON turns (agent, thread_id, first_seq);
CREATE INDEX turns_by_age ON turns (created_at, agent, first_seq);
CREATE INDEX turns_open ON turns (created_at, agent, first_seq) WHERE ended_at IS NULL;

CREATE TABLE unknown (
    turn_id   TEXT NOT NULL,
    call_id   TEXT NOT NULL,
    agent     INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    step      INTEGER NOT NULL,
    tool_name TEXT NOT NULL,
    safe_args TEXT NOT NULL,
    reason    TEXT NOT NULL,
    since     INTEGER NOT NULL,
    PRIMARY KEY (turn_id, call_id)
) STRICT, WITHOUT ROWID;

-- What turns asked of people and clients. status leaves 'pending' once, in the transaction of the event that decides.
CREATE TABLE actions (
    action_id    TEXT NOT NULL PRIMARY KEY,
    kind         TEXT NOT NULL,
    agent        INTEGER NOT NULL,
    agent_name   TEXT NOT NULL,
    turn_id      TEXT NOT NULL,
    thread_id    TEXT NOT NULL,
    step         INTEGER NOT NULL,
    call_id      TEXT NOT NULL,
    tool_name    TEXT NOT NULL,
    status       TEXT NOT NULL,
    requested_at INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    decided_at   INTEGER,
    decided_by   TEXT,
    required_seq INTEGER NOT NULL,
    resolved_seq INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX actions_pending ON actions (requested_at) WHERE status = 'pending';
CREATE INDEX actions_of_turn ON actions (turn_id);

CREATE TABLE rules (
    rule_id    TEXT NOT NULL PRIMARY KEY,
    agent      INTEGER NOT NULL,
    agent_name TEXT NOT NULL,
    rule       TEXT NOT NULL,
    added_at   INTEGER NOT NULL,
    added_by   TEXT NOT NULL,
    revoked_at INTEGER,
    revoked_by TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
    digest TEXT NOT NULL UNIQUE,
    data   BLOB NOT NULL
) STRICT;
