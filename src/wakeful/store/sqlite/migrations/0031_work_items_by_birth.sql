-- Lists of work items are read page by page, in the order in which the items were made.
CREATE INDEX work_items_by_birth ON work_items (agent, state, created_at, work_item_id);
