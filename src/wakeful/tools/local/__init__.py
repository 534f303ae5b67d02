"""Tools that come with the runtime and work on this machine: commands and files of a workspace.

Not here: what holds a command (`sandbox`), how a folder holds against links (`workspaces`), and whether a call may run
(`mediation`).
"""
