"""Tools: Python functions a model may call, and what becomes of their arguments and results.

Here live the decorator, the context a tool is given, parameter schemas, the threads of sync tools, results as parts.
Not here: whether a call may run, its deadline, its retries and its record; that is `mediation`.
"""
