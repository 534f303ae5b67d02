"""The store for programs that are not async is generated from the async one, and is up to date."""

import runpy
from pathlib import Path


def test_the_view_is_what_the_async_class_makes_of_it(root: Path) -> None:
    script = runpy.run_path(str(root / "scripts" / "write_store_handle.py"))
    made = script["formatted"](script["store_handle"](script["SOURCE"].read_text()))
    assert script["TARGET"].read_text() == made, "run: make fix"


def test_every_public_method_of_the_async_class_has_its_counterpart() -> None:
    from wakeful import AsyncStore, StoreHandle

    public = {name for name in vars(AsyncStore) if not name.startswith("_")}
    assert {name for name in vars(StoreHandle) if not name.startswith("_")} == public
