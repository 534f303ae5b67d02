"""Cutting texts to a number of bytes, never inside a character."""


def cut_text(words: str, most: int) -> str:
    """The beginning of a text, at most so many bytes of UTF-8."""
    # Every character is at least one byte: no need to encode more of a long text than could be shown.
    return words[:most].encode("utf-8", "surrogatepass")[:most].decode(errors="ignore")
