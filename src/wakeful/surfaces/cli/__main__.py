"""`python -m wakeful.surfaces.cli`: the same as `wakeful`, for where scripts are not on the path."""

import os
import sys

# `-m` puts the current folder before everything that is installed, and an agent may write there.
if sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109  (nothing is imported before this)
    del sys.path[0]

from wakeful.surfaces.cli.main import main

main()
