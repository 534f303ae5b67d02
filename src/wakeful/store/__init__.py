"""The log, and the rows that follow from it.

Here live the stored form of a fact (`encoding`), the hash chain (`chain`), which rows a fact changes (`rows`), who may
write (`leases`), and the backends: `memory` and `sqlite`. What a fact means for a turn is decided elsewhere; the store
numbers, keeps and hands back.
"""
