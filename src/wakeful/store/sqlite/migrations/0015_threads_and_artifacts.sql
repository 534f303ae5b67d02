-- Conversations, with what was last said in each; where each artifact is; turns of a name by their age.

CREATE TABLE threads (
    agent INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    turns INTEGER NOT NULL,
    newest_turn TEXT NOT NULL,
    began_at INTEGER NOT NULL,
    active_at INTEGER NOT NULL,
    PRIMARY KEY (agent, thread_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX threads_by_activity ON threads (active_at, agent, thread_id);
CREATE INDEX threads_of_name ON threads (agent_name, active_at, agent, thread_id);
CREATE INDEX threads_by_name ON threads (agent_name, agent, thread_id);

CREATE TABLE artifacts (
    artifact_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    agent INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (artifact_id, turn_id)
) STRICT, WITHOUT ROWID;

DROP INDEX turns_by_name;
CREATE INDEX turns_of_name ON turns (agent_name, created_at, agent, first_seq);
