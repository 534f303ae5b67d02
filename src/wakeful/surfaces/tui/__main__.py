"""The terminal UI: `python -m wakeful.surfaces.tui MODE full|inline [AGENT]`. `wakeful tui` becomes it."""

import sys

from wakeful.service.serving.socket_client import SocketClient
from wakeful.service.serving.socket_place import socket_path
from wakeful.surfaces.tui.console import Console
from wakeful.surfaces.tui.home_client import HomeClient
from wakeful.views.presentation.display_modes import display_mode


def main() -> int:
    mode, screen, agent = sys.argv[1:4]
    console = Console(HomeClient(SocketClient(socket_path())), agent=agent or None, mode=display_mode(mode))
    console.run(inline=screen == "inline", inline_no_clear=True)
    return console.return_code or 0


if __name__ == "__main__":
    sys.exit(main())
