"""The key that an address, a topic or a code is made with: the secret of the store, and a salt of its own.

A copy of the store has the secret and all salts up to then. What is made after it has a salt that is not in the copy.
"""

import hmac
from typing import Final, NewType

SaltedSecret = NewType("SaltedSecret", bytes)
SALT: Final = "salt"
"""What salts begin with, as ids do."""
_PURPOSE: Final = b"wakeful salt"


def salted(secret: bytes, salt: str | None) -> SaltedSecret:
    """The key for what has this salt. None: it was made before there were salts, and keeps what it had."""
    if salt is None:
        return SaltedSecret(secret)
    key = hmac.digest(secret, _PURPOSE, "sha256")
    return SaltedSecret(hmac.digest(key, salt.encode("utf-8", "surrogatepass"), "sha256"))
