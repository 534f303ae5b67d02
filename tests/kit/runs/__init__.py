"""Turns for tests: agents with scripts, whole trees, facts made by hand, stores filled with them."""
