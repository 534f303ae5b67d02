"""Calls that a client answers: their lifecycle, and where they are kept."""
