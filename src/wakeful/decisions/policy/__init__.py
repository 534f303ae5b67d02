"""The gate's rules as pure functions: what may be seen, what may run, who must be asked.

Here live permission classes (`permissions`), the owner's rules (`rules`), action policy (`actions`), provenance
(`provenance`), declarative call gates (`call_gates`), the catalogue (`catalog`), and the one verdict on a call that all
of it comes to (`verdict`).
Not here: awaiting a hook, asking a person, running anything. Time comes in as an argument.
"""
