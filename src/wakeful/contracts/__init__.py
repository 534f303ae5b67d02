"""Values: what every other part of wakeful speaks about.

Here live messages, conversation items, tool declarations, events, errors: pydantic models and standard-library types.
Not here: anything that decides, waits, reads a clock, touches a disk or draws a random number.
"""
