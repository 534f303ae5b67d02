-- Workspaces that agents may work in, the one that each works in, and worktrees that the runtime made.
CREATE TABLE attached_workspaces (
    agent INTEGER NOT NULL,
    workspace_id TEXT NOT NULL,
    workspace_anchor TEXT NOT NULL,
    attached_by TEXT NOT NULL,
    attached_at INTEGER NOT NULL,
    PRIMARY KEY (agent, workspace_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE active_workspaces (
    agent INTEGER NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    workspace_anchor TEXT NOT NULL,
    execution_root TEXT NOT NULL,
    execution_root_id TEXT NOT NULL,
    cwd TEXT NOT NULL,
    mode TEXT NOT NULL,
    projection_kind TEXT NOT NULL,
    worktree_id TEXT,
    original_branch TEXT NOT NULL,
    worktree_branch TEXT NOT NULL,
    used_by TEXT NOT NULL,
    used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE worktrees (
    worktree_id TEXT NOT NULL PRIMARY KEY,
    agent INTEGER NOT NULL,
    workspace_id TEXT NOT NULL,
    workspace_anchor TEXT NOT NULL,
    worktree_path TEXT NOT NULL,
    worktree_branch TEXT NOT NULL,
    base_branch TEXT NOT NULL,
    base_commit TEXT NOT NULL,
    task_id TEXT NOT NULL,
    state TEXT NOT NULL,
    cleanup_status TEXT,
    cleanup_reason TEXT,
    changed_files TEXT NOT NULL,
    detail TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX worktrees_of_agent ON worktrees (agent, created_at, worktree_id);
CREATE INDEX worktrees_of_task ON worktrees (task_id, created_at, worktree_id) WHERE task_id <> '';
