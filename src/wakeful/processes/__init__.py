"""Commands that may outlive the runtime: each runs under a small supervisor process of its own.

Here live the supervisor (`supervisor`, with the standard library and nothing else), what it and the runtime say to each
other (`frames`), where it puts output (`output_segments`), how a process is told from another that got its number later
(`process_identity`), and the runtime's end of it (`supervised_command`). Not here: how a command is confined, which is
`sandbox`, and what a task is to an agent.
"""
