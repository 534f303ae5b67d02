"""`python -m wakeful.surfaces.cli`: the same as `wakeful`, for where scripts are not on the path."""

from wakeful.surfaces.cli.main import main

main()
