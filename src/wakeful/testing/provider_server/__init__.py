"""A provider on this machine, for tests: OpenAI's two wire formats, Anthropic's and Gemini's, with weather.

`ProviderServer` is the server, `Weather` what goes wrong at it. `python -m wakeful.testing.provider_server` runs one
for commands and daemons.
"""

from wakeful.testing.provider_server.server import ProviderServer, ServedRequest
from wakeful.testing.provider_server.weather import WORDS, Trouble, Weather
from wakeful.testing.provider_server.wire_requests import WireRequest, WireTurn

__all__ = ["WORDS", "WireRequest", "ProviderServer", "ServedRequest", "Trouble", "WireTurn", "Weather"]
