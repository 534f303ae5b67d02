-- Memory: working memory, what threads were shown of it, episodes, corrections, uses. Briefs and work items say whom
-- they came from; their rows are made again from the log.
DROP TABLE briefs;
DROP TABLE work_items;
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
    created_at INTEGER NOT NULL,
    principal TEXT NOT NULL,
    derived_from TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX briefs_of_agent ON briefs (agent, created_seq);
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
    completed_at INTEGER,
    principal TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX work_items_open ON work_items (agent, updated_at, work_item_id) WHERE state = 'open';
CREATE INDEX work_items_completed ON work_items (agent, updated_at, work_item_id) WHERE state = 'completed';
CREATE TABLE working_memory (
    agent INTEGER NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    compression_epoch INTEGER NOT NULL,
    current TEXT NOT NULL,
    field_revisions TEXT NOT NULL,
    snapshot_revision INTEGER NOT NULL,
    snapshot TEXT NOT NULL,
    pending_delta TEXT,
    last_prompted_revision INTEGER,
    turn_index INTEGER NOT NULL,
    message_count INTEGER NOT NULL,
    active_episode TEXT,
    archived_episodes INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE prompted_memory (
    agent INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    snapshot_revision INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (agent, thread_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE episodes (
    episode_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    finalized_seq INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    finalized_at INTEGER NOT NULL,
    start_turn_index INTEGER NOT NULL,
    end_turn_index INTEGER NOT NULL,
    start_message_count INTEGER NOT NULL,
    end_message_count INTEGER NOT NULL,
    boundary_reason TEXT NOT NULL,
    current_work_item_id TEXT NOT NULL,
    objective TEXT NOT NULL,
    work_summary TEXT NOT NULL,
    working_set_files TEXT NOT NULL,
    commands TEXT NOT NULL,
    verification TEXT NOT NULL,
    decisions TEXT NOT NULL,
    carry_forward TEXT NOT NULL,
    waiting_on TEXT NOT NULL,
    untrusted TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX episodes_of_agent ON episodes (agent, finalized_seq);
CREATE TABLE memory_changes (
    agent INTEGER NOT NULL,
    entry TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    text TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    changed_seq INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (agent, entry)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_changes_of_agent ON memory_changes (agent, changed_seq);
CREATE TABLE memory_uses (
    agent INTEGER NOT NULL,
    ref TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    uses INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (agent, ref)
) STRICT, WITHOUT ROWID;
