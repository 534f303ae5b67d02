"""Tools: what a model may call, and what becomes of arguments and results.

Here live the decorator, the context a tool is given, parameter schemas, the threads of sync tools, results as parts;
sources of tools (`local` for files and commands, `mcp` for servers, `foreign` for tools of other frameworks, `client`
for what a client runs, `person` for questions); and hooks as their authors write them. Not here: whether a call may
run, its deadline, its retries and its record; that is `gate`.
"""
