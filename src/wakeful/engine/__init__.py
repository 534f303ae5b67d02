"""The shell that makes decisions happen.

Here live the agent's definition, the runner of one turn, its steps, and recovery. Not here: what to do next
(`decisions`), what may be done (`gate`), how bytes are kept (`store`), and what one may ask of the runtime
(`service`).
"""
