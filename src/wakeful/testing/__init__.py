"""For tests of programs that use wakeful: offline, repeatable, and killed on purpose.

Here live the scripted model's strict form, recordings, a provider with weather, a clock that stands still, ids that
count, stores of what waits for somebody, the crash suite and the pytest plugin. It stands outside the layers and may
import any of them; nothing in them imports it. Names are loaded when they are first used, because pytest imports this
package in every project that has wakeful installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.testing.crash_checks import KillReport
    from wakeful.testing.crash_store import CrashingStore
    from wakeful.testing.crash_suite import kill_everywhere
    from wakeful.testing.crash_switch import CrashSwitch, KillPoint
    from wakeful.testing.effect_ledger import Ledger, LedgerEntry
    from wakeful.testing.fixed_parts import FixedClock, SequentialIds
    from wakeful.testing.network import NetworkRefused, network_refused
    from wakeful.testing.provider_server.server import ProviderServer
    from wakeful.testing.provider_server.weather import Weather
    from wakeful.testing.recording import record
    from wakeful.testing.scripts import scripted
    from wakeful.testing.waiting_stores import MemoryPendingActionStore, MemoryRuntimeToolStore

_HOMES = {
    "scripted": "scripts",
    "record": "recording",
    "FixedClock": "fixed_parts",
    "SequentialIds": "fixed_parts",
    "kill_everywhere": "crash_suite",
    "KillReport": "crash_checks",
    "KillPoint": "crash_switch",
    "CrashSwitch": "crash_switch",
    "CrashingStore": "crash_store",
    "Ledger": "effect_ledger",
    "LedgerEntry": "effect_ledger",
    "MemoryPendingActionStore": "waiting_stores",
    "MemoryRuntimeToolStore": "waiting_stores",
    "NetworkRefused": "network",
    "network_refused": "network",
    "ProviderServer": "provider_server.server",
    "Weather": "provider_server.weather",
}

__all__ = [
    "CrashSwitch",
    "CrashingStore",
    "FixedClock",
    "KillPoint",
    "KillReport",
    "Ledger",
    "LedgerEntry",
    "MemoryPendingActionStore",
    "MemoryRuntimeToolStore",
    "NetworkRefused",
    "ProviderServer",
    "SequentialIds",
    "Weather",
    "kill_everywhere",
    "network_refused",
    "record",
    "scripted",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
