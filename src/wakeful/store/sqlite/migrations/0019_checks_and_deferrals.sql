-- Checks of timers; armed timers of an agent; messages that were set aside.
DROP TABLE timers;
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
    failures INTEGER NOT NULL,
    check_command TEXT,
    skipped INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_armed ON timers (due_at) WHERE state = 'armed';
CREATE INDEX timers_of_agent ON timers (agent, armed_at);
CREATE INDEX timers_armed_of_agent ON timers (agent, due_at) WHERE state = 'armed';
CREATE INDEX messages_deferred ON messages (agent, thread_id, admitted_seq) WHERE state = 'deferred';
