-- Timers, waits, pending hints, and why each agent woke the last time.
CREATE TABLE timers (
    timer_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    due_at INTEGER,
    cron TEXT,
    timezone TEXT NOT NULL,
    say TEXT NOT NULL,
    thread TEXT NOT NULL,
    catch_up TEXT NOT NULL,
    armed_by TEXT NOT NULL,
    armed_at INTEGER NOT NULL,
    derived_from TEXT,
    last_due INTEGER,
    last_end TEXT,
    last_message TEXT,
    fired INTEGER NOT NULL,
    folded INTEGER NOT NULL,
    missed INTEGER NOT NULL,
    failures INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_armed ON timers (due_at) WHERE state = 'armed';
CREATE INDEX timers_of_agent ON timers (agent, armed_at);
CREATE TABLE waits (
    wait_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    state TEXT NOT NULL,
    wake TEXT NOT NULL,
    reason TEXT NOT NULL,
    resource TEXT,
    work_item_id TEXT,
    due_at INTEGER NOT NULL,
    is_sleep INTEGER NOT NULL,
    derived_from TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    ended_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX waits_open ON waits (agent, thread_id, created_at) WHERE state = 'open';
CREATE TABLE pending_hints (
    agent INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    first_hint_id TEXT NOT NULL,
    hints INTEGER NOT NULL,
    stored_seqs TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (agent, thread_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE continuations (
    agent INTEGER NOT NULL PRIMARY KEY,
    thread_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    message_kind TEXT NOT NULL,
    treatment TEXT NOT NULL,
    resolution TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
