"""The owner's own: the home of this installation, and the one file in which its owner says what holds.

Here live where the home is and the reading of `wakeful.toml`, table by table. Not here: what a table means; whoever
has a table (providers, commands, hooks) reads its own.
"""
