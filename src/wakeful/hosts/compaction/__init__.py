"""Compaction as hosts ask for it: transcripts and documents as items, folded or moved out, with nothing lost unseen."""
