"""What may be asked about the settings of an installation: which values are in force, and where each comes from."""

import asyncio
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import NoRequest, OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.views.settings_report import SettingsReport


async def _show(opened: OpenStore, asked: NoRequest) -> "SettingsReport":
    from wakeful.service.queries.settings_report import settings_report

    owner = opened.living.supply.owner if opened.living is not None else None
    return await asyncio.to_thread(settings_report, owner)


SHOW_SETTINGS = Operation(
    "runtime.settings", "observe", NoRequest, "wakeful.views.settings_report.SettingsReport", _show
)
