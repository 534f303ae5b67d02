"""`doctor`: the report that `wakeful doctor` prints, for a program."""

from collections.abc import Sequence
from os import PathLike, fspath

from wakeful.bootstrap import installation
from wakeful.service.queries.doctor import DoctorReport


async def doctor(
    store: "str | PathLike[str]", *, live: Sequence[str] = (), timeout: float | None = None
) -> DoctorReport:
    """How this installation, its providers and a store are. Reads every byte of the store, and makes none.

    Nothing is sent to a provider, except one tiny call to each model in `live`, which waits for `timeout` seconds.
    """
    return await installation.doctor(fspath(store), live, timeout=timeout)
