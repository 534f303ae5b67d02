-- Agents of a runtime: their model, whether they were put away, and what they have done in numbers.
ALTER TABLE runtime_agents ADD COLUMN model_override TEXT;
ALTER TABLE runtime_agents ADD COLUMN model_changed_at INTEGER;
ALTER TABLE runtime_agents ADD COLUMN archived_at INTEGER;
ALTER TABLE runtime_agents ADD COLUMN deleted_at INTEGER;
CREATE INDEX runtime_agents_of_parent ON runtime_agents (parent, created_at) WHERE parent IS NOT NULL;
CREATE TABLE agent_figures (
    agent INTEGER NOT NULL PRIMARY KEY,
    messages INTEGER NOT NULL,
    compacted_messages INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    revisions INTEGER NOT NULL,
    tools TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE agent_revisions (
    agent INTEGER NOT NULL,
    number INTEGER NOT NULL,
    revision TEXT NOT NULL,
    source TEXT NOT NULL,
    place TEXT,
    turns_before INTEGER NOT NULL,
    revised_at INTEGER NOT NULL,
    PRIMARY KEY (agent, number)
) STRICT, WITHOUT ROWID;
