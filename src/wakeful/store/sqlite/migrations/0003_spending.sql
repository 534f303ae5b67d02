-- What was spent in each window of time, in billionths of a dollar; a view of every agent's log together. It changes in
-- the transaction of the events that hold money back and settle it.
CREATE TABLE spending (
    scope       TEXT NOT NULL,
    period      TEXT NOT NULL,
    began       INTEGER NOT NULL,
    turns       INTEGER NOT NULL,
    spend_limit INTEGER NOT NULL,
    limited_at  INTEGER NOT NULL,
    spent       INTEGER NOT NULL,
    held        INTEGER NOT NULL,
    granted     INTEGER NOT NULL,
    noticed     INTEGER NOT NULL,
    PRIMARY KEY (scope, period, began)
) STRICT, WITHOUT ROWID;
CREATE INDEX spending_by_end ON spending (turns);

-- What requests under way hold back, and in which windows.
CREATE TABLE holds (
    turn_id     TEXT NOT NULL,
    level       TEXT NOT NULL,
    agent       INTEGER NOT NULL,
    windows     TEXT NOT NULL,
    held        INTEGER NOT NULL,
    provisional INTEGER NOT NULL,
    priced      INTEGER NOT NULL,
    PRIMARY KEY (turn_id, level)
) STRICT, WITHOUT ROWID;
