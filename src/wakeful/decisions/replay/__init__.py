"""Replay: a stored turn is decided again, fact by fact, and every decision has to come out the same."""
