"""A turn made ready: its tools, its prompt, its models and its gate.

Each builder returns a value; `turn` puts them together.
"""
