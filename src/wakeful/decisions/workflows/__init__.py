"""Workflows: whether a graph holds together, in which order it is done, what goes into a node and comes out of a run.

Everything here is a pure function of the graph and of what nodes gave. Saving is the service's, running the engine's.
"""
