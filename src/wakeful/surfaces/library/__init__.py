"""The functions a program calls: `run`, `run_sync`, `stream`, `resume`, `resume_all`, `cancel`, `doctor`.

They open the store, hand the request to `service` and give back what it says. Async inside; `run_sync` is one thin
wrapper over `run`, never a second copy.
"""
