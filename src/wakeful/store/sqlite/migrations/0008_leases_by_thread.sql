-- Who runs a thread: an owner, how often that changed, and until when nobody else may take it. One row a thread that was
-- ever run. A lease by agent becomes one for each of its threads in which something is open; the old columns go, so
-- that a process of an older version cannot run a thread beside us.
CREATE TABLE leases (
    agent     INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    owner     TEXT,
    epoch     INTEGER NOT NULL,
    expires   REAL NOT NULL,
    PRIMARY KEY (agent, thread_id)
) STRICT, WITHOUT ROWID;
INSERT INTO leases
    SELECT DISTINCT t.agent, t.thread_id, a.owner, a.epoch, a.expires FROM turns t JOIN agents a ON a.id = t.agent
    WHERE t.ended_at IS NULL;
ALTER TABLE agents DROP COLUMN owner;
ALTER TABLE agents DROP COLUMN epoch;
ALTER TABLE agents DROP COLUMN expires;

-- Owners whose lease ran out while their process lived, thread by thread (0005).
CREATE TABLE late_owners_of_threads (
    agent     INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    owner     TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    PRIMARY KEY (agent, thread_id, owner)
) STRICT, WITHOUT ROWID;
INSERT INTO late_owners_of_threads
    SELECT DISTINCT t.agent, t.thread_id, l.owner, l.seq FROM late_owners l JOIN turns t ON t.agent = l.agent
    WHERE t.ended_at IS NULL;
DROP TABLE late_owners;
ALTER TABLE late_owners_of_threads RENAME TO late_owners;

-- What is open in a thread: few turns, however many ended in it.
CREATE INDEX turns_open_in_thread ON turns (agent, thread_id, first_seq) WHERE ended_at IS NULL;

-- The run that admitted the turn and waits for its thread, while nobody has claimed it: owner, slash, number.
ALTER TABLE turns ADD COLUMN caller TEXT;
