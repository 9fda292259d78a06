"""How long `import minigrad` takes beyond the `import numpy` inside it.

Each import is timed inside a fresh interpreter. The two alternate, so that whatever else the
machine is doing falls on both; the figure is the median of the pairs' differences.

    python tests/bench/import_time.py [pairs]
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TIME_AN_IMPORT = "from time import perf_counter as now; start = now(); import {}; print(now() - start)"


def import_time(module: str) -> float:
    """Seconds that `import module` takes in a fresh interpreter."""
    command = [sys.executable, "-c", TIME_AN_IMPORT.format(module)]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


def main(pairs: int = 20) -> None:
    import_time("minigrad")  # the first run writes the bytecode files and warms the disk cache
    timed = [(import_time("numpy"), import_time("minigrad")) for _ in range(pairs)]
    numpy = statistics.median(pair[0] for pair in timed)
    minigrad = statistics.median(pair[1] for pair in timed)
    difference = statistics.median(pair[1] - pair[0] for pair in timed)
    print(f"import numpy     {numpy:.3f} s, median of {pairs}")
    print(f"import minigrad  {minigrad:.3f} s")
    print(f"difference       {difference:.3f} s, median of {pairs} pairs")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
