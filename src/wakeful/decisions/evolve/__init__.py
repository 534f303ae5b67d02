"""What facts do to the state of a turn.

`one_fact` takes one in; the modules beside it say what it does, by subject: messages, turns, models, rounds, calls,
what is asked outside, levels, conversations that are folded. What is held is in `decisions.state` and
`decisions.levels`; what is done next is decided in `decisions.turn`.
"""
