"""What one may ask of the runtime: commands, queries, watching, and the points at which a host may listen in.

Not here: how a turn is carried out (`agents`), what a caller sees of it on a screen or a wire (`surfaces`).
"""
