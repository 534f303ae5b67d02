-- Owners whose lease ran out while their process lived: they may wake up. seq is the head of the agent's stream when
-- another took over: what was begun up to there may still happen. A row goes when its process is gone.
CREATE TABLE late_owners (
    agent INTEGER NOT NULL,
    owner TEXT NOT NULL,
    seq   INTEGER NOT NULL,
    PRIMARY KEY (agent, owner)
) STRICT, WITHOUT ROWID;
