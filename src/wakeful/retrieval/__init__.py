"""Collections that a turn may look things up in: named sets of text files, indexed for full text.

Here live cutting files into passages, the index, and the words a search is made of. Not here: what a collection is to
the runtime (`Collection` in `ports`), when one is searched (`engine.prepare.prompt`).
"""

from wakeful.retrieval.text_files import TextFiles

__all__ = ["TextFiles"]
