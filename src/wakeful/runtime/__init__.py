"""An agent's life between turns: its inbox, its due times, and which of its threads is to run next.

The runtime never runs a turn itself. It decides which thread is due and hands it to whoever runs turns. Everything that
it knows is in the log and in the rows that follow from it: a runtime that was killed is started again and goes on.
"""
