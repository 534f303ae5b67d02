"""Everything between a tool call and its result.

The order stands at the top of `passage`, and one record (`call_at_gate`) goes through all of it: `preparation` (what is
called, with what), `consultation` and `hooks` (who has a say), `verdicts` and `turn_policy` (the verdict), `refusals`,
`outside_requests`, `outside_answers` and `answered_calls` (people and clients), `call_locks`; then `running_call` with
its deadline, and the shape of its outcome (`result_shape`, `outcomes`, `call_failures`). Not here: which call runs when
(`decisions.turn`), what is written down when (`engine.runner`), the rules themselves (`decisions.policy`), and the
tools (`tools`).
"""
