"""Tokens of a home that is not this process's own."""

import time
from pathlib import Path

from wakeful.settings.access_tokens import FILE, add_token


def make_token(home: Path, name: str, scopes: tuple[str, ...]) -> str:
    return add_token(home / FILE, name, scopes, at=time.time(), by="test")
