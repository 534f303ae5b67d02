"""Programs that the demos run in processes of their own: texts, not modules, for they are what a user would write."""
