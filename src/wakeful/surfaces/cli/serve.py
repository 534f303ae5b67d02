"""`wakeful serve`: run the agents of the home in this terminal, and answer over HTTP."""

import os
import sys

from wakeful.service.serving.lifecycle import serve_command
from wakeful.service.serving.options import checked_options
from wakeful.surfaces.cli.options import ToolsOption
from wakeful.surfaces.cli.serving_options import (
    AccessOption,
    AdvertiseOption,
    DefaultModelOption,
    HostOption,
    ListenOption,
    PortOption,
    TokenFileOption,
    TokenOption,
    show_first_token,
)


def command(
    access: AccessOption = "local",
    host: HostOption = None,
    port: PortOption = None,
    listen: ListenOption = None,
    advertise: AdvertiseOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    model: DefaultModelOption = None,
    tools: ToolsOption = None,
) -> None:
    """Run the agents of the home in this terminal, and answer over HTTP until Ctrl-C.

    The socket of the home is open to you alone; every caller over the network needs a token.
    """
    options = checked_options(
        access=access,
        host=host,
        port=port,
        listen=listen,
        advertise=advertise,
        token=token,
        token_file=token_file,
        model=model,
        tools=tools or (),
    )
    show_first_token(options)
    line, _ = serve_command(options)
    sys.stdout.flush()
    os.execv(line[0], line)  # this process becomes the one that serves: the command line is not part of it
