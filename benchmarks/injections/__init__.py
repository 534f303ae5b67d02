"""Injections: tasks with private data, untrusted input and tools that act, done by a model that obeys every injection.

`python -m benchmarks.injections` runs all of them and writes `docs/injections.md`.
"""
