"""Read by every Python process that a test under weather starts: scripted models are asked over a wire there."""

import importlib
import os
import sys
from pathlib import Path

if os.environ.get("PROVIDER_SERVER"):
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    importlib.import_module("served_scripts").watch()
