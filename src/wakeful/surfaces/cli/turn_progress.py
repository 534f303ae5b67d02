"""A turn of the daemon while it goes on: a line on stderr for each call and what it came to.

The answer itself is printed at the end, on stdout. A daemon that goes away ends the lines and nothing else.
"""

import time

from rich.console import Console
from rich.text import Text

from wakeful.contracts.errors import WakefulError
from wakeful.service.operations.chat import SHOW_MESSAGE, MessageName
from wakeful.service.operations.turn_reports import LIST_LINES, LineQuery
from wakeful.service.serving.daemon_client import DaemonAddress, DaemonClient
from wakeful.service.serving.remote_operations import ask_daemon, stream_daemon
from wakeful.surfaces.cli.lines import line
from wakeful.surfaces.cli.shown_values import plain
from wakeful.views.run_stream_events import StatusEvent, TextEvent, ToolCallEvent

LOOK_AGAIN_SECONDS = 0.1


def show_progress(address: DaemonAddress, message: str) -> None:
    """Until the turn that takes the message has ended, or rests. Does not raise."""
    console = Console(stderr=True, highlight=False)
    client = DaemonClient(address)
    said = ""
    try:
        for each in stream_daemon(client, LIST_LINES, LineQuery(_turn_of(client, message))):
            event = each.stream
            if isinstance(event, TextEvent):
                said += event.text
                continue
            if isinstance(event, ToolCallEvent) and said.strip():
                console.print(Text(f"  {plain(said).strip()}", "dim"), overflow="ellipsis", no_wrap=True)
            said = ""  # words before a call are progress, the last ones are the answer
            is_over = isinstance(event, StatusEvent) and (event.is_terminal or event.status == "suspended")
            words = line(event) if event is not None and not is_over else None
            if words is not None:
                console.print(words, overflow="ellipsis", no_wrap=True)
            if is_over:
                return
    except WakefulError:
        return
    finally:
        client.close()


def _turn_of(client: DaemonClient, message: str) -> str:
    """The turn that takes a message, once one does."""
    while (turn := ask_daemon(client, SHOW_MESSAGE, MessageName(message)).turn_id) is None:
        time.sleep(LOOK_AGAIN_SECONDS)
    return turn
