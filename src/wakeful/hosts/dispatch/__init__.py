"""Dispatch: work handed to an executor, and the records of its runs."""
