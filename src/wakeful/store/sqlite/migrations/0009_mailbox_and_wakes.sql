-- Where each message is, from its admission to the end of the turn that took it.
CREATE TABLE messages (
    message_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    state TEXT NOT NULL,
    band INTEGER NOT NULL,
    kind TEXT NOT NULL,
    authority TEXT NOT NULL,
    key TEXT,
    turn_id TEXT NOT NULL,
    admitted_seq INTEGER NOT NULL,
    admitted_at INTEGER NOT NULL,
    taken_at INTEGER,
    ended_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_queued ON messages (agent, thread_id, band, admitted_seq) WHERE state = 'queued';
CREATE INDEX messages_of_turn ON messages (turn_id, admitted_seq) WHERE ended_at IS NULL;

-- Threads in which something is open.
CREATE TABLE busy_threads (
    agent INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    turns INTEGER NOT NULL,
    queued INTEGER NOT NULL,
    PRIMARY KEY (agent, thread_id)
) STRICT, WITHOUT ROWID;

-- When a thread is worth a look, and why.
CREATE TABLE wakes (
    agent INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    due_at INTEGER,
    cause TEXT NOT NULL,
    cause_id TEXT NOT NULL,
    PRIMARY KEY (agent, thread_id, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX wakes_due ON wakes (due_at) WHERE due_at IS NOT NULL;
