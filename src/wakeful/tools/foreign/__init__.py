"""Tools of other frameworks, taken over as they are: `tool(x)` with their objects.

One module a framework, each loaded when one of its objects is given; the framework itself is never imported to
recognise one. An object that relies on something that would be lost here (its own approvals, guardrails, preparation)
is refused.
"""
