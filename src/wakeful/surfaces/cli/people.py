"""Who acts, in words: the log says `local:1000`, a person reads `you`, or the name of the other user."""

import os
import re

from wakeful.surfaces.cli.connect_option import connect_to

RUNTIME = "runtime-control"
"""The stream of what belongs to no agent, as the log calls it."""
_LOCAL = re.compile(r"\blocal:(\d+)\b")


def named_people(text: str) -> str:
    """The text with users of this machine by their names. Of a daemon elsewhere the users are others."""
    if "local:" not in text or connect_to.get() or os.environ.get("WAKEFUL_CONNECT"):
        return text
    return _LOCAL.sub(lambda found: _name(int(found[1])) or found[0], text)


def named_stream(agent: str) -> str:
    """The name that people see: an agent's, or that of the runtime itself."""
    return "runtime" if agent == RUNTIME else agent


def _name(uid: int) -> str:
    if uid == os.getuid():
        return "you"
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return ""
