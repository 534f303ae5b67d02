"""The gate's rules as pure functions: what may be seen, what may run, who must be asked.

Here live permission classes and the belt (`permissions`, `toolbelt`), the owner's rules (`rules`), action policy
(`actions`), visibility (`visibility`), provenance (`provenance`), declarative call gates (`call_gates`), capability
ceilings (`ceilings`), the catalogue (`catalog`), and the one verdict on a call that all of it comes to (`judging`).
Not here: awaiting a hook, asking a person, running anything. Time comes in as an argument.
"""
