"""What one may ask of the runtime: commands, queries, watching, and the points at which a host may listen in.

Here live running, steering and interrupting turns, deciding approvals and answering for clients, the tools of a turn
(`toolbelt`, `inventory`), why a call ended as it did (`explaining`), replay, and what hosts register (`hooks`,
`abilities`). Not here: how a turn is carried out (`agents`), what a caller sees of it on a screen or a wire
(`surfaces`).
"""
