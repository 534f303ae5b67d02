-- `turns` and `turn_costs` hold what follows from the log, and nothing else: they are declared as data.

-- Claims are no view. epoch counts them; caller is the run that admitted the turn and waits for its thread, while nobody
-- has claimed it: owner, slash, number.
CREATE TABLE turn_claims (
    turn_id TEXT NOT NULL PRIMARY KEY,
    epoch   INTEGER NOT NULL,
    caller  TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO turn_claims SELECT turn_id, epoch, caller FROM turns WHERE epoch > 0 OR caller IS NOT NULL;

CREATE TABLE turn_costs_of_turns (
    turn_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    costs TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO turn_costs_of_turns
    SELECT t.turn_id, t.agent, t.ended_at, c.first_at, c.last_at, c.costs
    FROM turns t JOIN turn_costs c ON c.turn = t.agent << 40 | t.first_seq WHERE t.ended_at IS NOT NULL;
DROP TABLE turn_costs;
ALTER TABLE turn_costs_of_turns RENAME TO turn_costs;
CREATE INDEX turn_costs_by_end ON turn_costs (ended_at);

CREATE TABLE turns_of_the_log (
    turn_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    agent_name TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    state TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    window_from INTEGER NOT NULL,
    turn_index INTEGER NOT NULL,
    key TEXT,
    fingerprint TEXT NOT NULL,
    prompt_preview TEXT NOT NULL,
    waiting_for TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    heard INTEGER NOT NULL
) STRICT;
INSERT INTO turns_of_the_log
    SELECT turn_id, agent, agent_name, thread_id, state, first_seq, last_seq, window_from, turn_index, key, fingerprint,
           prompt_preview, waiting_for, created_at, ended_at, heard
    FROM turns ORDER BY id;
DROP TABLE turns;
ALTER TABLE turns_of_the_log RENAME TO turns;
CREATE UNIQUE INDEX turns_by_key ON turns (key) WHERE key IS NOT NULL;
CREATE INDEX turns_by_age ON turns (created_at, agent, first_seq);
CREATE INDEX turns_open ON turns (created_at, agent, first_seq) WHERE ended_at IS NULL;
CREATE INDEX turns_of_agent ON turns (agent, first_seq);
CREATE INDEX turns_by_thread ON turns (thread_id, agent, first_seq);
CREATE INDEX turns_open_in_thread ON turns (thread_id, agent, first_seq) WHERE ended_at IS NULL;
CREATE INDEX turns_by_last_event ON turns (thread_id, agent, last_seq);
CREATE INDEX turns_by_name ON turns (agent_name, agent, first_seq);
CREATE INDEX turns_by_name_and_end ON turns (agent_name, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX turns_by_end ON turns (ended_at) WHERE ended_at IS NOT NULL;
