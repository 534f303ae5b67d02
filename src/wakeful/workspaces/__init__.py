"""Workspaces: folders that agents work in, and what the runtime itself does there.

Here lives git as the runtime runs it. Not here: tools, and what holds a command (`sandbox`).
"""
