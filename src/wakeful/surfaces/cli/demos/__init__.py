"""Programs that the demos run in processes of their own: texts, not modules, because they are what a user would write."""
