"""What a collection gives back: passages with where they are from."""

from wakeful.contracts.values import Value


class Passage(Value):
    """A stretch of a text that a search found."""

    ref: str
    """`collection:path#L10-L24` for files; whatever leads back to it for others."""
    text: str
    title: str = ""
    digest: str | None = None
    score: float = 0.0
    """Higher is nearer; comparable within one search only."""
