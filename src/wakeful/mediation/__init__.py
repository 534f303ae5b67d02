"""Everything between a tool call and its result.

Here live the gate (`mediator`, with its order written at the top), the check of arguments, the running of one call with
its deadline, and the shape of its outcome. Not here: which call runs when (`decisions.turn`), what is written down when
(`agents.runner`), and the tools themselves (`tools`).
"""
