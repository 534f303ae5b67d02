-- When a task that had failed went on last, because a turn of its child was tried again.
CREATE TABLE tasks_before AS SELECT * FROM tasks;
DROP TABLE tasks;
CREATE TABLE tasks (
    task_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    summary TEXT NOT NULL,
    parent_turn_id TEXT NOT NULL,
    parent_call_id TEXT,
    parent_message_id TEXT,
    work_item_id TEXT,
    wait_policy TEXT NOT NULL,
    derived_from TEXT NOT NULL,
    cmd_digest TEXT NOT NULL,
    recovery TEXT,
    output_path TEXT,
    initial_output TEXT NOT NULL,
    result_summary TEXT NOT NULL,
    exit_status INTEGER,
    failure TEXT,
    output_summary TEXT NOT NULL,
    output_bytes INTEGER NOT NULL,
    output_truncated INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at INTEGER,
    retried_at INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO tasks SELECT *, NULL FROM tasks_before;
DROP TABLE tasks_before;
CREATE INDEX tasks_open ON tasks (created_at, task_id) WHERE ended_at IS NULL;
CREATE INDEX tasks_by_command ON tasks (agent, cmd_digest, created_at, task_id) WHERE ended_at IS NULL;
CREATE INDEX tasks_of_agent ON tasks (agent, created_at, task_id);
