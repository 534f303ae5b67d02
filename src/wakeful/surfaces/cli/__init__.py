"""The `wakeful` command: one small module a command, named in `main`, loaded when it is asked for.

Here live what a person types and what a person or a program reads back. Not here: anything that decides, stores or runs
(`service`), and what is named concretely (`bootstrap`). Results go to stdout, everything else to stderr.
"""
