"""Views of the one log: facts in, what somebody is shown out. Pure, and never a second source of truth.

`mapping` says which fact is shown as what, to whom; `tree` and `wire` are views. `views.run_stream` and
`hosts.loop` are older ones that follow the same table. What reads the store for a view is in `service/queries/views`.
"""
