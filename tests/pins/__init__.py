"""What other programs and people rely on, recorded as goldens: import lines, JSON, what commands print, events.

`make pins` records all of them anew; README.md says when.
"""
