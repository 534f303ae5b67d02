"""`python -m benchmarks` does what `python benchmarks/run.py` does. The parts import each other by their bare names."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from run import main

main()
