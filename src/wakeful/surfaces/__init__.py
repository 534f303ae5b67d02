"""How people and programs meet the runtime: thin, and none knows another.

Here live the library's functions, the command line and the conversation-loop facade. Not here: anything that decides or
remembers; a surface asks `service` and shows what comes back.
"""
