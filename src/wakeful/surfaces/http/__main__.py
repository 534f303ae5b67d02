"""The serving process: `python -m wakeful.surfaces.http HANDLE`, with its options on that handle. `wakeful serve`
becomes it, and `wakeful daemon start` starts it. With `check` behind it, it says whether it could, and ends."""

import asyncio
import gc
import json
import os
import sys

from wakeful.contracts.errors import WakefulError
from wakeful.service import guard_imports
from wakeful.service.serving.daemon_log import begin_log, daemon_log, say
from wakeful.service.serving.options import ServeOptions
from wakeful.service.serving.package_watch import keep_to_package
from wakeful.service.serving.run_files import HomeServed, read_secrets, write_failure

COLLECT_AFTER = 5_000, 3, 300


def main() -> int:
    with os.fdopen(int(sys.argv[1]), encoding="utf-8") as given:
        options = ServeOptions.model_validate_json(given.read())
    gc.set_threshold(*COLLECT_AFTER)
    if sys.argv[2:]:
        return _check(options, binds="bind" in sys.argv[2:])
    try:
        for name, value in read_secrets().items():
            os.environ.setdefault(name, value)
        begin_log(daemon_log())
        keep_to_package()
        guard_imports()
        from wakeful.surfaces.http.server import serve

        gc.freeze()
        asyncio.run(serve(options, say))
    except WakefulError as error:
        if not isinstance(error, HomeServed):  # the one that serves has not failed
            write_failure("startup", error.message, error.hint)
        sys.stderr.write(f"Error: {error.message}\n" + (f"Hint: {error.hint}\n" if error.hint else ""))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        write_failure("startup", f"{type(error).__name__}: {error}")
        raise
    return 0


def _check(options: ServeOptions, *, binds: bool) -> int:
    """What is wrong is said on stdout, as data: code that is loaded may write elsewhere."""
    try:
        for name, value in read_secrets().items():
            os.environ.setdefault(name, value)
        guard_imports()
        from wakeful.surfaces.http.server import check_start

        asyncio.run(check_start(options, binds=binds))
    except WakefulError as error:
        sys.stdout.write("\n" + json.dumps({"message": error.message, "hint": error.hint}))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
