-- Turns of a thread that was deleted are turns of no thread: nobody finds them along it.
ALTER TABLE turns ADD COLUMN deleted_at INTEGER;
DROP INDEX turns_by_thread;
DROP INDEX turns_by_last_event;
CREATE INDEX turns_by_thread ON turns (thread_id, agent, first_seq) WHERE deleted_at IS NULL;
CREATE INDEX turns_by_last_event ON turns (thread_id, agent, last_seq) WHERE deleted_at IS NULL;
CREATE INDEX turns_deleted ON turns (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX turns_deleted_of_thread ON turns (thread_id, agent, deleted_at, first_seq) WHERE deleted_at IS NOT NULL;
CREATE INDEX artifacts_of_turn ON artifacts (turn_id, artifact_id);
