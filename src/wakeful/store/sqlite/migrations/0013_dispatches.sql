-- Work that is handed to a target or to a package is a dispatch: the word task is kept for background work.

ALTER TABLE task_runs RENAME TO dispatches;
UPDATE dispatches SET kind = 'target' WHERE kind = 'task';
CREATE INDEX dispatches_by_kind ON dispatches (kind, number);

ALTER TABLE task_run_events RENAME TO dispatch_events;
