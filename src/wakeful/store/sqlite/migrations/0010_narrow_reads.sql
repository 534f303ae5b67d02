-- Questions about one thread, one agent or one name go along an index of their own, however many turns there are.

-- By thread first: who has a thread is asked without naming an agent, too.
DROP INDEX turns_by_thread;
CREATE INDEX turns_by_thread ON turns (thread_id, agent, first_seq);
-- The turns of a thread that have something after an event.
CREATE INDEX turns_by_last_event ON turns (agent, thread_id, last_seq);
CREATE INDEX turns_of_agent ON turns (agent, first_seq);

-- The streams in which an agent of that name had turns, and its turns by their end.
DROP INDEX turns_by_name;
CREATE INDEX turns_by_name ON turns (agent_name, agent);
CREATE INDEX turns_by_name_and_end ON turns (agent_name, ended_at) WHERE ended_at IS NOT NULL;
