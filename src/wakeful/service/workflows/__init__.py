"""Workflows run as durable turns."""
