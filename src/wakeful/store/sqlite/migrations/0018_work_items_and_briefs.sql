-- Work items, the current one of each agent, and briefs.
CREATE TABLE work_items (
    work_item_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    objective TEXT NOT NULL,
    state TEXT NOT NULL,
    plan_status TEXT NOT NULL,
    todo_list TEXT NOT NULL,
    blocked_by TEXT,
    recheck_at INTEGER,
    recheck_message_id TEXT NOT NULL,
    recheck_consumed_at INTEGER,
    triggered_at INTEGER,
    report_event_id TEXT NOT NULL,
    derived_from TEXT NOT NULL,
    turns TEXT NOT NULL,
    idle_turns INTEGER NOT NULL,
    plan_turns INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    completed_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX work_items_open ON work_items (agent, updated_at, work_item_id) WHERE state = 'open';
CREATE INDEX work_items_completed ON work_items (agent, updated_at, work_item_id) WHERE state = 'completed';
CREATE TABLE work_focus (
    agent INTEGER NOT NULL PRIMARY KEY,
    current_work_item_id TEXT NOT NULL,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE briefs (
    brief_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    visibility TEXT NOT NULL,
    work_item_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    related_message_id TEXT NOT NULL,
    related_task_id TEXT NOT NULL,
    created_seq INTEGER NOT NULL,
    text_event_id TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX briefs_of_agent ON briefs (agent, created_seq);
