"""Pending actions: what a host stages for a decision, and what became of it."""
