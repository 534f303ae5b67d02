"""The parts of `wire.py`: what is sent and decoded (`samples`), who does it (`formats`), and the three measurements.

`encoding`, `decoding` and `streaming` each measure inside a process of their own; `server` is the other end of
`streaming`.
"""
