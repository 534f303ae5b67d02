"""Everything between a tool call and its result.

Here live the gate (`mediator`, with its order written at the top) and its parts: the check of arguments, the verdict
(`judging`, `policing`), hooks (`consulting`), asking people and clients (`asking`, `binding`), locks; then the running
of one call with its deadline, and the shape of its outcome. Not here: which call runs when (`decisions.turn`), what is
written down when (`engine.runner`), the rules themselves (`decisions.policy`), and the tools (`tools`).
"""
