"""Pure choices: what follows from what is known.

Here live a turn's state (`state`), what facts do to it (`evolving`), what to do next (`turn`), and the rules both use.
Nothing here awaits, reads a clock, draws a random number, logs, or touches anything outside its arguments: the same
decisions run in the library, in replay, and wherever else turns are run.
"""
