"""Confinement: commands that can do no more than they were allowed to, and leave nothing behind.

Here live what the machine can enforce (`probing`), what a command may see and change (`places`, `environment`,
`grants`), how it is held (`bubblewrap`, `landlock` with `seccomp`, `launcher`), how much of the machine it gets
(`watching`), and `confined`, which puts these together and runs one command. Also here: what keeps an agent's files
from running inside the runtime (`own_code`, `import_guard`, `late_imports`). Not here: tools, workspaces, and whether a
command may run at all.
"""
