-- What operators see of all agents, numbered in the order of commits.
CREATE TABLE feed (
    position INTEGER NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    visibility TEXT NOT NULL,
    category TEXT NOT NULL,
    is_result INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX feed_of_agent ON feed (agent, seq);
CREATE INDEX feed_results ON feed (position) WHERE is_result = 1;
CREATE INDEX feed_results_of_agent ON feed (agent, seq) WHERE is_result = 1;
