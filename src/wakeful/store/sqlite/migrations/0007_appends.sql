-- The log from version 7 on: one row an append. What was written before stays in `events`, and nothing is added there.
-- id = agent << 40 | sequence of its first fact. turn = agent << 40 | first event of the turn it belongs to; 0: of none.
CREATE TABLE appends (
    id     INTEGER PRIMARY KEY,
    turn   INTEGER NOT NULL,
    header BLOB NOT NULL,
    body   BLOB NOT NULL,
    hash   BLOB NOT NULL
) STRICT;
CREATE INDEX appends_of_turn ON appends (turn) WHERE turn > 0;

CREATE TRIGGER events_are_closed BEFORE INSERT ON events BEGIN
    SELECT RAISE(ABORT, 'this store was updated by a newer wakeful: restart the programs that use it');
END;

-- What the requests to models of a turn that ended come to: a view of its log. turn = agent << 40 | its first event.
-- first_at and last_at are when the first and the last request was sent; costs is a JSON list of groups.
CREATE TABLE turn_costs (
    turn     INTEGER PRIMARY KEY,
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    costs    TEXT NOT NULL
) STRICT;

CREATE INDEX turns_by_end ON turns (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX turns_by_name ON turns (agent_name);
