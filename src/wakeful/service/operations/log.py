"""What may be asked about the log itself."""

from typing import TYPE_CHECKING

from wakeful.service.operations.operation import NoRequest, OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.service.queries.log_check import CheckedEvent


async def _log(opened: OpenStore, asked: NoRequest) -> "list[CheckedEvent]":
    from wakeful.service.queries.log_check import check_store

    return [each async for each in check_store(opened.store)]


CHECK_LOG = Operation(
    "log.check", "observe", NoRequest, "wakeful.service.queries.log_check.CheckedEvent", _log, many=True
)
