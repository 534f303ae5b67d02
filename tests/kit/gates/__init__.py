"""Calls and commands for tests: ways into the gate, a model that tries everything, sandboxes, planted programs."""
