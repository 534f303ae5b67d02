"""The functions a program calls: `run`, `run_sync`, `stream`, `resume`, `resume_all`, `doctor`, and what
may be asked of a turn under way: `cancel`, `interrupt`, `pause`, `interject`.

They open the store, hand the request to `service` and give back what it says. Async inside; `run_sync` is one thin
wrapper over `run`, never a second copy.
"""
