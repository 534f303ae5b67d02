-- When a wake was written: one from the future was written by a clock that was ahead.
CREATE TABLE wakes_before AS SELECT * FROM wakes;
DROP TABLE wakes;
CREATE TABLE wakes (
    agent INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    due_at INTEGER,
    cause TEXT NOT NULL,
    cause_id TEXT NOT NULL,
    alarm INTEGER,
    set_at INTEGER NOT NULL,
    PRIMARY KEY (agent, thread_id, subject)
) STRICT, WITHOUT ROWID;
INSERT INTO wakes SELECT agent, thread_id, subject, due_at, cause, cause_id, alarm, 0 FROM wakes_before;
DROP TABLE wakes_before;
CREATE INDEX wakes_by_alarm ON wakes (alarm) WHERE alarm IS NOT NULL;
